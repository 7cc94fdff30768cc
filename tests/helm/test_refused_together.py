"""Values that each may be right, and do not go together, are refused, and what to set is said."""

from __future__ import annotations

import pytest

from tests.helm.rendering import HELMS, Object, rendered

WORKER = {"repository": "w", "tag": "1"}
BAD: list[tuple[Object, str]] = [
    ({"tls": {"clientCa": {"existingSecret": "x"}}}, "tls.clientCa needs tls.existingSecret"),
    ({"backup": {"to": "file:///var/lib/jobline/backup"}}, "backup.to is on the volume"),
    ({"backup": {"to": "local://backup"}}, "backup.to is on the volume"),
    ({"config": {"history": "bucket/history"}}, "config.history is on the volume"),
    ({"config": {"history": "/var/lib/jobline"}}, "config.history is on the volume"),
    ({"config": {"history": "/var/lib/jobline/data/x"}}, "config.history is on the volume"),
    ({"config": {"history": "/srv/../var/lib//jobline/x"}}, "config.history is on the volume"),
    ({"config": {"history": "file:///var/lib/jobline/x"}}, "config.history is on the volume"),
    ({"backup": {"schedule": "@daily"}}, "backup.schedule needs backup.enabled"),
    (
        {"backup": {"enabled": True, "timeZone": "Europe/Zurich"}},
        "backup.timeZone needs backup.schedule",
    ),
    (
        {"auth": {"existingSecret": "keys"}, "backup": {"enabled": True, "schedule": "@daily"}},
        "backup.schedule needs backup.token.existingSecret",
    ),
    (
        {
            "tls": {"existingSecret": "own", "clientCa": {"existingSecret": "theirs"}},
            "backup": {"enabled": True, "schedule": "@daily"},
        },
        "backup.schedule needs tls.clientCertificate",
    ),
    (
        {"backup": {"enabled": True, "schedule": "@weekly"}},
        "backup.longestGapSeconds: set it to the longest time between two backups of `@weekly`",
    ),
    ({"backup": {"enabled": True, "schedule": "@monthly"}}, "longestGapSeconds: set it"),
    ({"backup": {"enabled": True, "schedule": "@yearly"}}, "longestGapSeconds: set it"),
    ({"backup": {"enabled": True, "schedule": "@annually"}}, "longestGapSeconds: set it"),
    ({"backup": {"enabled": True, "schedule": "0 3 * * 1-5"}}, "longestGapSeconds: set it"),
    ({"backup": {"enabled": True, "schedule": "0 3 ? * SUN"}}, "longestGapSeconds: set it"),
    ({"backup": {"enabled": True, "schedule": "0 3 1 * *"}}, "longestGapSeconds: set it"),
    ({"backup": {"enabled": True, "schedule": "0 3 */2 * *"}}, "longestGapSeconds: set it"),
    ({"backup": {"enabled": True, "schedule": "0 3 * JAN *"}}, "longestGapSeconds: set it"),
    (
        {"backup": {"enabled": True, "schedule": "@weekly", "longestGapSeconds": 86_400}},
        "longestGapSeconds: set it",
    ),
    ({"prometheusRule": {"enabled": True}}, "prometheusRule needs serviceMonitor.enabled"),
    (
        {
            "auth": {"existingSecret": "x"},
            "workers": {"mail": {"image": WORKER, "keda": {"enabled": True}}},
        },
        "workers.mail.keda needs existingSecret",
    ),
    (
        {
            "tls": {"existingSecret": "own", "clientCertificate": {"existingSecret": "shown"}},
            "auth": {"existingSecret": "keys"},
            "workers": {"mail": {"image": WORKER, "keda": {"enabled": True}}},
        },
        "workers.mail.keda needs tls.clientCa",
    ),
    (
        {
            "tls": {"existingSecret": "own", "clientCa": {"existingSecret": "theirs"}},
            "workers": {"mail": {"image": WORKER}},
        },
        "workers.mail needs clientCertificate",
    ),
    (
        {
            "tls": {"existingSecret": "own", "clientCa": {"existingSecret": "theirs"}},
            "serviceMonitor": {"enabled": True},
        },
        "serviceMonitor needs tls.clientCertificate",
    ),
    (
        {"auth": {"existingSecret": "keys"}, "serviceMonitor": {"enabled": True}},
        "serviceMonitor needs token.existingSecret",
    ),
    (
        {"backup": {"enabled": True, "schedule": "@daily", "token": {"existingSecret": "saver"}}},
        "backup.token needs tls.existingSecret",
    ),
    ({"tests": {"token": {"existingSecret": "doctor"}}}, "tests.token needs tls.existingSecret"),
    (
        {"workers": {"mail": {"image": WORKER, "token": {"existingSecret": "mail"}}}},
        "workers.mail.token needs tls.existingSecret",
    ),
    (
        {
            "tls": {"existingSecret": "own"},
            "auth": {"existingSecret": "keys"},
            "workers": {"mail": {"image": WORKER}},
        },
        "workers.mail needs token.existingSecret where auth is set",
    ),
    # The server asks for no certificate.
    (
        {
            "tls": {"existingSecret": "own", "clientCertificate": {"existingSecret": "shown"}},
            "auth": {"existingSecret": "keys"},
            "workers": {"mail": {"image": WORKER, "env": [{"name": "A", "value": "b"}]}},
        },
        "workers.mail needs token.existingSecret where auth is set",
    ),
    (
        {"workers": {"mail": {"image": WORKER, "keda": {"enabled": True, "minReplicas": 11}}}},
        "workers.mail.keda.minReplicas is above maxReplicas (10)",
    ),
    (
        {
            "workers": {
                "mail": {
                    "image": WORKER,
                    "keda": {"enabled": True, "minReplicas": 3, "maxReplicas": 2},
                }
            }
        },
        "workers.mail.keda.minReplicas is above maxReplicas (2)",
    ),
    (
        {"terminationGracePeriodSeconds": 29},
        "terminationGracePeriodSeconds is shorter than config.drain_seconds (30)",
    ),
    (
        {"terminationGracePeriodSeconds": 60, "config": {"drain_seconds": 60.5}},
        "terminationGracePeriodSeconds is shorter than config.drain_seconds (60.5)",
    ),
    (
        {"service": {"grpcPort": 443, "httpPort": 443}},
        "service.grpcPort and service.httpPort are the same",
    ),
    ({"service": {"grpcPort": 7071}}, "service.grpcPort and service.httpPort are the same"),
    (
        {
            "persistence": {"existingClaim": "jobs"},
            "backup": {"enabled": True, "volume": {"existingClaim": "jobs"}},
        },
        "backup.volume.existingClaim is the claim of the data",
    ),
    (
        {"backup": {"enabled": True, "volume": {"existingClaim": "data-jobs-jobline-0"}}},
        "backup.volume.existingClaim is the claim of the data",
    ),
]  # fmt: skip


@pytest.mark.parametrize("helm", HELMS)
@pytest.mark.parametrize(
    ("values", "said"), BAD, ids=[f"{said}-{n}" for n, (_, said) in enumerate(BAD)]
)
def test_values_that_do_not_go_together_are_refused_by_name(helm, values, said, tmp_path):
    """Else one of them would be ignored in silence, or fail in a pod that nobody looks at."""
    done = rendered(values, tmp_path, helm)
    assert done.returncode != 0
    assert said in done.stderr


@pytest.mark.parametrize("history", ["", "/var/lib/jobline-backup/history", "file:///srv/history"])
def test_a_history_outside_of_the_volume_of_the_data_is_taken(history, tmp_path):
    done = rendered({"backup": {"enabled": True}, "config": {"history": history}}, tmp_path)
    assert done.returncode == 0, done.stderr
    assert f'history = "{history}"' in done.stdout


@pytest.mark.parametrize(
    "values",
    [
        {"terminationGracePeriodSeconds": 1, "config": {"drain_seconds": 0}},
        {"terminationGracePeriodSeconds": 30},
        {"workers": {"mail": {"image": WORKER, "keda": {"enabled": True, "minReplicas": 10}}}},
        {"persistence": {"existingClaim": "jobs"}, "backup": {"enabled": True}},
    ],
)
def test_values_at_their_bounds_are_taken(values, tmp_path):
    done = rendered(values, tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("tls", "worker"),
    [
        ({}, {"token": {"existingSecret": "mail"}}),
        ({}, {"existingSecret": "mail"}),
        ({}, {"env": [{"name": "JOBLINE_TOKEN", "value": "x"}]}),
        ({"clientCa": {"existingSecret": "a"}}, {"clientCertificate": {"existingSecret": "b"}}),
        (
            {"clientCa": {"existingSecret": "a"}, "clientCertificate": {"existingSecret": "b"}},
            {},
        ),
    ],
)
def test_a_worker_that_may_have_something_to_show_is_taken(tls, worker, tmp_path):
    """What keys a Secret of its own has nobody knows here."""
    values = {
        "tls": {"existingSecret": "own", **tls},
        "auth": {"existingSecret": "keys"},
        "workers": {"mail": {"image": WORKER, **worker}},
    }
    done = rendered(values, tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "name",
    [
        "JOBLINE_SERVER",
        "JOBLINE_TOKEN",
        "JOBLINE_TLS_CA",
        "JOBLINE_CLIENT_CERTIFICATE",
        "JOBLINE_CLIENT_KEY",
    ],
)
def test_a_worker_cannot_set_the_variables_that_the_chart_sets(name, tmp_path):
    """Of two of one name the last counts: the worker would call another server, or show nothing.
    Where the chart does not set one, it is the worker's own."""
    worker = {"image": WORKER, "env": [{"name": name, "value": "x"}]}
    guarded = {
        "tls": {
            "existingSecret": "own",
            "clientCa": {"existingSecret": "theirs"},
            "clientCertificate": {"existingSecret": "shown"},
        },
        "auth": {"existingSecret": "keys"},
        "workers": {"mail": {**worker, "token": {"existingSecret": "token"}}},
    }
    done = rendered(guarded, tmp_path)
    assert done.returncode != 0
    assert f"workers.mail.env has {name}, which the chart sets itself" in done.stderr

    done = rendered({"workers": {"mail": worker}}, tmp_path)
    assert (done.returncode == 0) is (name != "JOBLINE_SERVER"), done.stderr
