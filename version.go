package doorward

// Version is that of the program and of all packages. The other files that name it are written from
// it: go test -run GoldenVersion . -update.
const Version = "0.9.0-dev"
