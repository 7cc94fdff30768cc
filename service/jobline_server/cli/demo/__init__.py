"""The demo: real processes, real files, a kill -9 half-way, and every result checked.

    parent ── starts ──▶ server (its own process, its own directory)
           ── pushes ──▶ one job a file
           ── starts ──▶ workers (a process each), who checksum files through `Worker`
           ── kills  ──▶ one of them half-way, and with --kill-server the server too

Everything that a client asked or was told goes into a journal that the server never sees; `verdict`
reads it afterwards and says whether a promise was broken. The demo is a user of the client and of
the command line: it imports nothing of the server.
"""
