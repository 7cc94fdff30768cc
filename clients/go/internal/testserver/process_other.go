//go:build !linux

package testserver

import "syscall"

func diesWithTest() *syscall.SysProcAttr { return nil }
