package joblinetest

// KillServer ends the server of a kit, as a test of a program that outlives its server does; it does not wait for that.
func KillServer(k *Kit) { _ = k.server.process.Kill() }
