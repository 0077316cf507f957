package examples_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// nginxMain is the configuration around the example, like Debian's, with every file in
// the test's folder.
const nginxMain = `error_log stderr warn;
pid nginx.pid;
events {}
http {
	access_log off;
	client_body_temp_path body;
	proxy_temp_path proxy;
	fastcgi_temp_path fastcgi;
	uwsgi_temp_path uwsgi;
	scgi_temp_path scgi;
	include doorward.conf;
}
`

func TestNginx(t *testing.T) {
	nginx := need(t, "nginx")
	t.Parallel()
	s := open(t, "nginx", func(t *testing.T, folder string) {
		write(t, filepath.Join(folder, "nginx.conf"), nginxMain)
		run(t, folder, nginx, "-p", folder, "-c", "nginx.conf", "-g", "daemon off; master_process off;")
	})
	t.Run("only nginx asks Doorward", func(t *testing.T) { testNginxQuestion(t, s) })
	testGateway(t, s)
}

// testNginxQuestion: clients can't use the internal location, and don't see the headers
// of its answer.
func testNginxQuestion(t *testing.T, s *site) {
	if got := s.ask(t, s.people["USER"].Token(), "GET /_doorward?action=message.send", ""); got.status != http.StatusNotFound {
		t.Errorf("%d %s", got.status, got.body)
	}
	got := s.ask(t, s.people["VIEWER"].Token(), "POST /messages", "")
	wantProblem(t, got, http.StatusForbidden, "forbidden")
	for name := range got.header {
		if strings.HasPrefix(name, "X-Auth-") {
			t.Errorf("the client gets %s", name)
		}
	}
}
