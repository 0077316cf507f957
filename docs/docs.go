// Package docs holds the pages of this folder, so that a server can show those
// that belong to it. README.md says which there are and in which order;
// web/pages makes HTML of them.
package docs

import "embed"

// Files are the pages and the pictures in them, by their names in this folder.
//
//go:embed *.md decisions/*.md images/*.png
var Files embed.FS
