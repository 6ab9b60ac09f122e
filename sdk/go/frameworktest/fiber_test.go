package frameworktest

// fiber is not built on net/http: its adaptor runs the rest of the handlers when a middleware of
// net/http has returned. A middleware of fiber begins and ends the token instead.

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	bywash "bywash.dev/go"
	"github.com/gofiber/fiber/v3"
)

// terminable returns a middleware that answers 504 if a handler returns the error of a checkpoint.
// It cancels no context, and it does not notice that a client leaves.
func terminable(controller *bywash.Controller, class string) fiber.Handler {
	return func(c fiber.Ctx) error {
		token, err := controller.Begin(class)
		if err != nil {
			return err
		}
		defer token.End()
		// fiber reuses the memory of the fields, and the token keeps its name.
		name := strings.Clone(c.Get(bywash.RequestHeader))
		if name == "" {
			name = rand.Text()
		}
		token.Bring(http.Header{bywash.RequestHeader: {name}})
		c.SetContext(token.In(c.Context()))
		err = c.Next()
		var over *bywash.Terminated
		if !errors.As(err, &over) {
			return err
		}
		c.Set("Cache-Control", "no-store")
		if over.Reason == bywash.RanTooLong {
			c.Set("Retry-After", fmt.Sprintf("%.0f", max(math.Ceil(over.RetryAfter.Seconds()), 1)))
		}
		return c.Status(fiber.StatusGatewayTimeout).SendString(over.Error())
	}
}

func TestFiberTerminatesAtCheckpoints(t *testing.T) {
	controller, err := bywash.NewController(bywash.NewClass("search", 200*time.Millisecond, 200*time.Millisecond))
	check(t, err)
	app := fiber.New()
	app.Use(terminable(controller, "search"))
	var tokens []*bywash.Token
	runsOut := func(c fiber.Ctx) error {
		tokens = append(tokens, bywash.From(c.Context()))
		for {
			if err := bywash.Checkpoint(c.Context()); err != nil {
				return err
			}
			time.Sleep(time.Millisecond)
		}
	}
	app.Get("/waits", runsOut)
	app.Get("/own", func(c fiber.Ctx) error {
		_ = runsOut(c)
		return c.SendStatus(fiber.StatusServiceUnavailable)
	})
	app.Get("/fails", func(fiber.Ctx) error { return fiber.ErrTeapot })
	app.Get("/quick", func(c fiber.Ctx) error { return c.SendString("quick") })
	for _, scene := range []struct {
		path, name string
		status     int
	}{
		{"/waits", "first", 504}, {"/waits", "other", 504}, {"/waits", "", 504}, {"/own", "", 503}, {"/fails", "", 418}, {"/quick", "", 200},
	} {
		request := httptest.NewRequest("GET", scene.path, nil)
		request.Header.Set(bywash.RequestHeader, scene.name)
		response, err := app.Test(request, fiber.TestConfig{Timeout: time.Minute})
		check(t, err)
		body, err := io.ReadAll(response.Body)
		check(t, err)
		retry, cache := response.Header.Get("Retry-After"), response.Header.Get("Cache-Control")
		if response.StatusCode != scene.status || (scene.status == 504) != (retry == "10" && cache == "no-store") {
			t.Error(scene.path, response.Status, response.Header, string(body))
		}
	}
	if tokens[0].Name() != "first" || tokens[1].Name() != "other" || tokens[2].Name() == "" {
		t.Error(tokens[0].Name(), tokens[1].Name(), tokens[2].Name())
	}
	if stats := controller.Stats()["search"]; stats.Arrived != 6 || stats.Terminated != 4 || stats.Running != 0 {
		t.Errorf("%+v", stats)
	}
}
