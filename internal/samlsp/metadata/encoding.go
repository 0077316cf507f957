package metadata

import (
	"bytes"
	"encoding/binary"
	"regexp"
	"unicode/utf16"
)

// declaredUTF16 is the declaration of a text in UTF-16, which is none any more once it was decoded, here or where somebody has
// pasted it.
var declaredUTF16 = regexp.MustCompile(`^<\?xml [^>]*encoding=["'](?i:utf-16(?:le|be)?)["'][^>]*\?>`)

// inUTF8 returns the text without a byte order mark, which AD FS and others write, and out of UTF-16, in which Windows saves
// files, where the mark says so. What reads the text later gets it like that.
func inUTF8(said []byte) []byte {
	said = bytes.TrimPrefix(said, []byte("\xef\xbb\xbf"))
	for mark, order := range map[string]binary.ByteOrder{"\xff\xfe": binary.LittleEndian, "\xfe\xff": binary.BigEndian} {
		text, isMarked := bytes.CutPrefix(said, []byte(mark))
		if !isMarked || len(text)%2 != 0 {
			continue
		}
		units := make([]uint16, len(text)/2)
		for i := range units {
			units[i] = order.Uint16(text[2*i:])
		}
		said = []byte(string(utf16.Decode(units)))
		break
	}
	return declaredUTF16.ReplaceAll(said, nil)
}
