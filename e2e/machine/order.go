package machine

import "net/netip"

// Order is what the init of a machine does, and the first line of JSON on its standard
// input. It answers an Answer when all of it is done. After it come commands, a line
// each, and each has its Answer:
//
//	kill PROGRAM                     SIGKILL, and it stays away
//	start PROGRAM                    after kill, or if it was held
//	signal POD-UID CONTAINER NUMBER  to the main process of a container
//
// The end of its standard input is the end of the machine.
type Order struct {
	Hostname string
	IP       netip.Addr // the zero value: no network
	// Cgroups are files by which it enters its cgroups, and with it all that it starts.
	Cgroups []string
	Binds   []Bind
	// Run are folders that are empty at every boot, in memory.
	Run []string
	// Containerd is started first, and when it listens at Socket, Images are imported,
	// which are archives, and get further names: AlsoCalled has the image of each.
	Containerd Program
	Socket     string
	Images     []string
	AlsoCalled map[string]string
	Programs   []Program
}

// Bind lays a file or folder over one of the host's, and is for the machine alone. From is
// what has that path before anything is laid over anything.
type Bind struct{ From, To string }

// Program is started at boot, unless it is held, and again a second after it ended by
// itself.
type Program struct {
	Name string
	Path string
	Args []string
	Log  string // a file, appended to
	Held bool
}

// Answer says what became of the order or of a command.
type Answer struct{ Error string }
