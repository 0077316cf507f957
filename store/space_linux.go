package store

import "syscall"

// freeBytes is what is left to this user on the file system of a folder.
func freeBytes(folder string) (n int64, known bool) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(folder, &fs); err != nil {
		return 0, false
	}
	return int64(fs.Bavail) * int64(fs.Bsize), true //nolint:unconvert // int32 on some processors
}
