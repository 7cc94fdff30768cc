"""The demo: real processes, real files, a kill -9 half-way, and every result checked.

    parent ── starts ──▶ server (its own process, its own directory)
           ── pushes ──▶ one job per file
           ── starts ──▶ workers (a process each), which checksum files through `Worker`
           ── kills  ──▶ one of them half-way, and with --kill-server the server too

All requests and replies of the clients go into a journal that the server never sees; `verdict`
reads it afterwards and lists broken guarantees. The demo uses the client and the command line, and
imports nothing of the server.
"""
