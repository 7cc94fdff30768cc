"""The report: answers from the tables as plain values, and as one HTML page with plots.

| module | |
|---|---|
| `answers` | asks the tables; `--json` prints what it returns |
| `capacity_check` | hands the busiest hours out again, to see whether Erlang C is right |
| `charts` | answers → plots (Altair) |
| `page` | answers and plots → one HTML file that needs no network |
"""
