package jobline

import (
	"net"
	"os"
	"regexp"
	"strconv"
)

// DefaultTarget is the address of a server, unless an argument or JOBLINE_SERVER says another.
const DefaultTarget = "localhost:7070"

// Targets that gRPC understands by themselves.
var ofGRPC = regexp.MustCompile(`^(dns|unix|unix-abstract|passthrough|xds):.`)

// targetOf returns the address of a server, checked: gRPC would fail each call for a bad one.
func targetOf(target string) (string, error) {
	if target == "" {
		target = os.Getenv("JOBLINE_SERVER")
	}
	if target == "" {
		target = DefaultTarget
	}
	if ofGRPC.MatchString(target) {
		return target, nil
	}
	host, port, err := net.SplitHostPort(target)
	number, bad := strconv.Atoi(port)
	if err != nil || bad != nil || host == "" || number < 1 || number > 65535 {
		return "", refuse("target", "the server's address %q is not HOST:PORT: write it as in %s", target, DefaultTarget)
	}
	return target, nil
}
