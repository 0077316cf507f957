package store

import "syscall"

func spaceOf(folder string) (Space, error) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(folder, &fs); err != nil {
		return Space{}, err
	}
	return Space{
		Folder: folder, Free: int64(fs.Bavail) * int64(fs.Bsize), //nolint:unconvert // int32 on some processors
		Files: int64(fs.Ffree), FilesKnown: fs.Files > 0,
	}, nil
}
