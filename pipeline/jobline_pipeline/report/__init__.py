"""The report: answers from the tables as plain values, and as one HTML page with plots.

| module | |
|---|---|
| `moments` | what happened when, in spans that fit the length of the history |
| `answers` | asks the tables; `--json` prints what it returns |
| `capacity_check` | hands the busiest hours out again, to see whether Erlang C is right |
| `findings` | what stands out in the answers, as sentences |
| `charts` | answers → plots (Altair) |
| `sections`, `shown` | the tables of the page, and how values are written |
| `page` | answers and plots → one HTML file that needs no network |
"""
