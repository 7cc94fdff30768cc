package testserver

import "syscall"

// diesWithTest ends a server with the test that started it, even if that was killed.
func diesWithTest() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
