package bywash

// Tests of temporary files of large uploads: net/http removes those that it finds in the request
// that it made itself.

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"
)

func TestTheFilesOfAnUploadAreRemovedAlsoAfterAPanic(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	files := func() int {
		entries, err := os.ReadDir(folder)
		check(t, err)
		return len(entries)
	}
	handler, _ := wrap(t, within(time.Hour, time.Hour), func(_ http.ResponseWriter, r *http.Request) {
		check(t, r.ParseMultipartForm(1))
		if files() != 1 {
			t.Error("it is in no file")
		}
		if r.URL.Path == "/panic" {
			panic("as it is to")
		}
	})
	around := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { _ = recover() }()
		handler.ServeHTTP(w, r)
	})
	for _, start := range versions {
		server := httptest.NewUnstartedServer(around)
		start(server)
		s := at(t, server)
		for _, path := range []string{"/", "/panic"} {
			s.upload(path)
			until(t, func() bool { return files() == 0 })
		}
	}
}

func (s *site) upload(path string) {
	s.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("file", "large")
	must(s.t, err)
	_, err = part.Write(make([]byte, 1<<20))
	must(s.t, err)
	must(s.t, form.Close())
	response, err := s.client.Post(s.url+path, form.FormDataContentType(), &body)
	must(s.t, err)
	response.Body.Close()
}
