"""`make pipeline-demo`: the history of a real server under a real load, as tables and a report.

    __main__ ── starts ──▶ a server that exports, in a process of its own
             ── starts ──▶ workers, a process each; kills one with jobs in its hands
             ── pushes ──▶ a shop's jobs: lots, single ones, flows, a batch, delayed ones
             ── stops  ──▶ the server, when nothing is left to do; keeps what it counted
             ── runs   ──▶ the pipeline over what was exported, and compares

| module | |
|---|---|
| `shop` | the queues of the shop; how long its jobs run, and which fail |
| `load` | pushes the jobs, and waits until they have ended |
| `worker` | one worker process |
| `play` | the processes, and what happens to them |
| `counted` | what the server counted, and what the tables say: equal, or not |
| `screen` | what is shown |
"""
