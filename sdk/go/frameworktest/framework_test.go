// Package frameworktest tests the middleware around popular frameworks for net/http, and the SDK's
// functions in fiber.
package frameworktest

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	bywash "bywash.dev/go"
	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	"github.com/labstack/echo/v4"
)

// routes returns the routes of each framework: handlers that return when they are notified, and
// handlers that answer themselves.
func routes() map[string]http.Handler {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.Use(gin.Recovery())
	engine.GET("/waits", func(c *gin.Context) { <-c.Request.Context().Done() })
	engine.GET("/own", func(c *gin.Context) {
		<-c.Request.Context().Done()
		c.JSON(http.StatusServiceUnavailable, gin.H{"own": true})
	})
	engine.GET("/own200", func(c *gin.Context) {
		<-c.Request.Context().Done()
		c.String(http.StatusOK, "part of it")
	})
	engine.GET("/own204", func(c *gin.Context) {
		// gin sends it when the handler has returned.
		c.Status(http.StatusNoContent)
		<-c.Request.Context().Done()
	})
	engine.GET("/quick", func(c *gin.Context) { c.Status(http.StatusOK) })
	router := chi.NewRouter()
	router.Get("/waits", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	router.Get("/own", func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		http.Error(w, `{"own":true}`, http.StatusServiceUnavailable)
	})
	router.Get("/own200", func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		w.WriteHeader(http.StatusOK)
		_, _ = io.WriteString(w, "part of it")
	})
	router.Get("/own204", func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		w.WriteHeader(http.StatusNoContent)
	})
	router.Get("/quick", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusOK) })
	e := echo.New()
	e.HTTPErrorHandler = handleError
	e.GET("/waits", func(c echo.Context) error {
		_, err := search(c.Request().Context())
		return err
	})
	e.GET("/own", func(c echo.Context) error {
		<-c.Request().Context().Done()
		return echo.NewHTTPError(http.StatusServiceUnavailable)
	})
	e.GET("/own200", func(c echo.Context) error {
		<-c.Request().Context().Done()
		return c.String(http.StatusOK, "part of it")
	})
	e.GET("/own204", func(c echo.Context) error {
		<-c.Request().Context().Done()
		return c.NoContent(http.StatusNoContent)
	})
	e.GET("/quick", func(c echo.Context) error { return c.NoContent(http.StatusOK) })
	return map[string]http.Handler{"gin": engine, "chi": router, "echo": e}
}

func TestATerminatedRequestIsAnswered504(t *testing.T) {
	for framework, handler := range routes() {
		t.Run(framework, func(t *testing.T) {
			c, err := bywash.NewController(bywash.NewClass("search", 200*time.Millisecond, 200*time.Millisecond))
			check(t, err)
			wrap, err := c.Middleware("search")
			check(t, err)
			server := httptest.NewServer(wrap(handler))
			defer server.Close()
			response, body := get(t, server.URL+"/waits")
			var problem struct{ Reason string }
			if response.StatusCode != http.StatusGatewayTimeout || response.Header.Get("Cache-Control") != "no-store" ||
				response.Header.Get("Retry-After") == "" || json.Unmarshal(body, &problem) != nil || problem.Reason != "ran_too_long" {
				t.Error(response.Status, response.Header, string(body))
			}
			// The handler's own answer is sent.
			if response, body := get(t, server.URL+"/own"); response.StatusCode != http.StatusServiceUnavailable {
				t.Error(response.Status, string(body))
			}
			if response, body := get(t, server.URL+"/own200"); response.StatusCode != http.StatusOK || string(body) != "part of it" {
				t.Error(response.Status, string(body))
			}
			if response, body := get(t, server.URL+"/own204"); response.StatusCode != http.StatusNoContent {
				t.Error(response.Status, string(body))
			}
			if response, body := get(t, server.URL+"/quick"); response.StatusCode != http.StatusOK || len(body) != 0 {
				t.Error(response.Status, string(body))
			}
			if stats := c.Stats()["search"]; stats.Arrived != 5 || stats.Terminated != 4 {
				t.Errorf("%+v", stats)
			}
		})
	}
}

func TestAnErrorOfEchoIsAnsweredIfTheRequestGoesOn(t *testing.T) {
	e := echo.New()
	e.HTTPErrorHandler = handleError
	e.GET("/fails", func(echo.Context) error { return io.ErrUnexpectedEOF })
	for of, handler := range map[string]http.Handler{"a class": terminate(e), "no class": e} {
		server := httptest.NewServer(handler)
		if response, body := get(t, server.URL+"/fails"); response.StatusCode != http.StatusInternalServerError || len(body) == 0 {
			t.Error(of, response.Status, string(body))
		}
		server.Close()
	}
}

func get(t *testing.T, url string) (*http.Response, []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	check(t, err)
	request.Header.Set("Accept", "application/json")
	response, err := http.DefaultClient.Do(request)
	check(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	check(t, err)
	return response, body
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
