package jobline

// Version of this module, which workers tell the server.
const Version = "0.1.0"
