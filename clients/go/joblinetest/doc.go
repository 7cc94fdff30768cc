// Package joblinetest tests programs that use Jobline with the real server, whose time the test moves.
//
//	func TestSignUp(t *testing.T) {
//		kit := joblinetest.New(t, nil)
//		signUp(kit.Client, "a@b.c")
//		kit.AssertPushed("welcome", joblinetest.PayloadHas(map[string]any{"to": "a@b.c"}))
//		kit.Drain(handlers) // func(worker *jobline.Worker), as the program has it
//		kit.AssertPushed("welcome", joblinetest.In(jobline.StateCompleted))
//	}
//
// One server is started for all tests of a package, at the first [New], and ends with the process. It
// keeps everything in memory, and each [New] empties it. Its clock stands still until [Kit.Advance]
// moves it, so an hour takes as long as what there is to do in it. Nothing is simulated.
//
// # The command
//
// The server is the command jobline, of the Python package jobline-server, which the README of the project
// says how to install, where the tests run. It is [Options].Command, or JOBLINE_COMMAND of the environment, or the one in
// PATH. Without it tests fail, and say so.
//
// # Time
//
// Only the server's clock stands still. Handlers that sleep do so in real time, and so do the timeouts
// of [Kit.Drain] and [Kit.WaitFor] and of contexts. [Kit.Drain] moves no clock: what is to be retried
// later stays SCHEDULED.
//
// # Parallel tests
//
// There is one server, so tests with a kit wait for each other, even if they are parallel. The subtests
// of a test share its kit.
package joblinetest
