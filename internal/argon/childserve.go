package argon

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"golang.org/x/crypto/argon2"
)

// greeting is what a process for hashes writes first. Change the number with the format
// of requests or answers.
const greeting = "doorward password hashes, protocol 1\n"

// maxPassword bounds a password in a request, in bytes. Callers allow less.
const maxPassword = 64 << 10

// request is one hash to make.
type request struct {
	Password []byte
	Salt     []byte
	Cost     Params
	Size     uint32 // of the tag, in bytes
}

func (r request) derive() []byte {
	return argon2.IDKey(r.Password, r.Salt, r.Cost.Time, r.Cost.MemoryKiB, r.Cost.Parallelism, r.Size)
}

// header begins a request. The salt and the password follow. The answer is the ID, in
// idSize bytes, and the tag.
type header struct {
	ID             uint64
	Cost           Params
	Size           uint32
	Salt, Password uint32 // their lengths
}

const idSize = 8

func (h header) check() error {
	if h.Size == 0 || h.Size > maxTag || h.Salt > maxSalt || h.Password > maxPassword {
		return fmt.Errorf("argon: a request with a tag of %d, a salt of %d and a password of %d bytes", h.Size, h.Salt, h.Password)
	}
	return h.Cost.checkCost()
}

// frame returns the bytes of the request in one array, so that the caller can overwrite the
// only copy of the password that this makes.
func (r request) frame(id uint64) ([]byte, error) {
	h := header{ID: id, Cost: r.Cost, Size: r.Size, Salt: uint32(len(r.Salt)), Password: uint32(len(r.Password))}
	if err := h.check(); err != nil {
		return nil, err
	}
	frame := make([]byte, 0, binary.Size(h)+len(r.Salt)+len(r.Password))
	frame, err := binary.Append(frame, binary.LittleEndian, h)
	return append(append(frame, r.Salt...), r.Password...), err
}

// readRequest returns the request and its ID. The password is at the end of an array that
// holds only it and the salt.
func readRequest(in io.Reader) (r request, id uint64, err error) {
	var h header
	if err := binary.Read(in, binary.LittleEndian, &h); err != nil {
		return r, 0, err
	}
	if err := h.check(); err != nil {
		return r, 0, err
	}
	body := make([]byte, h.Salt+h.Password)
	_, err = io.ReadFull(in, body)
	return request{Salt: body[:h.Salt], Password: body[h.Salt:], Cost: h.Cost, Size: h.Size}, h.ID, err
}

// ServeChild makes the hashes that a pool asks for, and returns nil when in ends. Call it
// in a process that does nothing else: it turns the garbage collector off and collects
// after each answer, so that it has memory for one hash only. Passwords are overwritten
// after use; copies inside x/crypto/argon2 are not. Errors: a request beyond the limits, and
// those of in and out.
func ServeChild(in io.Reader, out io.Writer) error {
	debug.SetGCPercent(-1)
	if _, err := io.WriteString(out, greeting); err != nil {
		return err
	}
	for {
		r, id, err := readRequest(in)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		runtime.GOMAXPROCS(int(r.Cost.Parallelism)) // one thread for each lane
		tag := r.derive()
		clear(r.Password)
		if _, err := out.Write(append(binary.LittleEndian.AppendUint64(nil, id), tag...)); err != nil {
			return err
		}
		runtime.GC()
	}
}
