"""`jobline flow …`: jobs that wait for each other."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text
from rich.tree import Tree

from jobline._flow_values import Flow, FlowNode
from jobline._printable import printable
from jobline.cli.as_json import plain
from jobline.cli.command import JOBS, Cli, command

Id = Annotated[int, typer.Argument(metavar="ID", help="The root, or any job that waits.")]
MaxJobs = Annotated[
    int, typer.Option("--max-jobs", metavar="N", min=1, max=10_000, help="How many jobs at most.")
]
MaxDepth = Annotated[
    int | None,
    typer.Option("--max-depth", metavar="N", min=0, max=100, help="How far; 1: its children."),
]


def register(app: typer.Typer) -> None:
    """Adds `flow` and its verb."""
    flows = typer.Typer(help="Flows: jobs that wait for each other.", no_args_is_help=True)
    app.add_typer(flows, name="flow", rich_help_panel=JOBS)
    command(flows, "get")(get)


def get(cli: Cli, job: Id, *, max_jobs: MaxJobs = 1_000, max_depth: MaxDepth = None) -> None:
    """Show a job with those that it waits for, as a tree with their states."""
    flow = cli.client.flows.get(job, max_jobs=max_jobs, max_depth=max_depth)
    cli.out.document(plain(flow), _tree(flow))


def _tree(flow: Flow) -> Tree:
    """The tree of a flow; a job that several wait for has its children where it stands first."""
    nodes = {node.id: node for node in flow.jobs}
    root = Tree(_line(flow.root))
    branches = {flow.root.id: root}
    for node in flow.jobs:
        # A job stands before its children.
        branch = branches[node.id]
        for child in node.children:
            if child in branches:
                branch.add(Text(f"{child} (see above)", style="dim"))
            elif child in nodes:
                branches[child] = branch.add(_line(nodes[child]))
    if flow.is_cut:
        root.add(Text("… and more", style="dim"))
    return root


def _line(node: FlowNode) -> Text:
    if not node.state:
        return Text(f"{node.id} not kept any more", style="dim")
    what = "/".join(filter(None, [node.queue, node.name]))
    reason = f" ({node.reason.name.lower()})" if node.reason else ""
    return Text(printable(f"{node.id} {what} {node.state.name.lower()}{reason}"))
