"""`jobline batch` against a real server."""

from __future__ import annotations

from jobline.cli.exit_codes import Exit
from tests.cli.conftest import NO_JOB


def test_batch_is_created_filled_closed_and_done(jobline, queue):
    created = jobline(
        "batch", "create", "--name", "import", "--on-complete", f"{queue}-after", "--json"
    )
    batch = created.document["id"]
    for _ in range(2):
        assert jobline("push", queue, "{}", "--batch", str(batch)).code == Exit.OK
    assert jobline("batch", "close", str(batch), "--json").document["state"] == "CLOSED"
    listed = jobline("batch", "ls", "--state", "closed", "--name", "import")
    assert str(batch) in listed.out
    assert "2" in jobline("job", "ls", f"batch:{batch}", "--json").out
    dry = jobline("batch", "cancel", str(batch), "--dry-run", "--json").document
    assert (dry["cancelled"], dry["dry_run"]) == (2, True)
    cancelled = jobline("batch", "cancel", str(batch), "--yes", "--reason", "wrong file")
    assert "2 jobs cancelled" in cancelled.out
    found = jobline("batch", "get", str(batch), "--json").document
    assert (found["state"], found["cancelled"]) == ("COMPLETE", 2)
    assert jobline("batch", "get", NO_JOB).code == Exit.NOT_FOUND
    assert jobline("batch", "ls", "--state", "odd").code != Exit.OK
