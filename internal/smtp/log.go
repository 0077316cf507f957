package smtp

import (
	"context"
	"errors"
	"log/slog"
	"net/mail"
)

// logTransport is the transport for development: it writes mails to the log, with the secret
// links in their text.
type logTransport struct {
	from *mail.Address
	log  *slog.Logger
}

func openLog(rest string, from *mail.Address, log *slog.Logger) (Transport, error) {
	if rest != "" {
		return nil, errors.New("mail destination: nothing follows log: (write file:DIR to keep mails in files)")
	}
	return &logTransport{from: from, log: log}, nil
}

// Send fails if the log level would drop the line, so that no mail is lost silently.
func (t *logTransport) Send(ctx context.Context, m Message) error {
	l, err := newLetter(t.from, m)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if !t.log.Enabled(ctx, slog.LevelInfo) {
		return errors.New("mail destination log: shows mails at log level info, which is switched off: set the log level to info or the destination to file:DIR")
	}
	t.log.LogAttrs(ctx, slog.LevelInfo, "mail, for development only: the destination log: sends nothing",
		slog.String("to", l.To), slog.String("subject", l.Subject), slog.String("text", m.Text))
	return nil
}

func (t *logTransport) Check(context.Context) error { return nil }
