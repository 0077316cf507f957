// Uses the module client from another one, as a service does: go run . ADDRESS PASSWORD
package main

import (
	"context"
	"errors"
	"log"
	"os"

	"github.com/doorward/doorward/client"
)

func main() {
	auth, err := client.New(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	if _, err := auth.Check(context.Background(), client.Request{Action: "message.send"}); !errors.Is(err, client.ErrUnauthenticated) {
		log.Fatalf("without a session: %v", err)
	}
}
