package console

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/webhook"
	"github.com/doorward/doorward/web/ui"
)

// attempt is one attempt of a delivery as the pages show it.
type attempt struct {
	doorward.DeliveryAttempt
	N           int    // from 1
	Kind        string // delivered, refused (the answer was not 2xx) or silent (there was none)
	NoAnswerKey string // key of the message that says why there is no answer; empty: show Error
	Headers     []header
}

// header is a line of a request.
type header struct{ Name, Value string }

// noAnswerKeys are the keys of the messages for the errors of attempts without an answer.
var noAnswerKeys = map[string]string{
	webhook.NotAllowed: "hooks.silent.address", webhook.Late: "hooks.silent.late", webhook.LateForTest: "hooks.silent.test",
	webhook.Cancelled: "hooks.silent.cancelled", webhook.NotAccepted: "hooks.silent.refused",
	webhook.Reset: "hooks.silent.reset", webhook.Broken: "hooks.silent.broken", webhook.NoMasterKey: "hooks.silent.masterkey", webhook.NoEvent: "hooks.silent.event",
}

func attemptOf(a doorward.DeliveryAttempt) attempt {
	one := attempt{DeliveryAttempt: a, Kind: "refused", NoAnswerKey: noAnswerKeys[a.Error]}
	switch {
	case a.Error != "":
		one.Kind = "silent"
		if strings.HasPrefix(a.Error, webhook.NotTrusted) {
			one.NoAnswerKey = "hooks.silent.certificate"
		}
	case a.Status >= 200 && a.Status < 300:
		one.Kind = "delivered"
	}
	return one
}

// delivery is a delivery as the pages show it.
type delivery struct {
	doorward.WebhookDelivery
	Tries []attempt // the newest first
}

// MessageKey returns the key of the message about the event; empty for none.
func (d delivery) MessageKey() string { return messageKeyOf(d.Type, doorward.Done) }

// Last returns the newest attempt; nil for none.
func (d delivery) Last() *attempt {
	if len(d.Tries) == 0 {
		return nil
	}
	return &d.Tries[0]
}

func deliveryOf(d doorward.WebhookDelivery) delivery {
	one := delivery{WebhookDelivery: d}
	for n, a := range slices.Backward(d.Attempts) {
		shown := attemptOf(a)
		shown.N = n + 1
		one.Tries = append(one.Tries, shown)
	}
	return one
}

func deliveriesOf(all []doorward.WebhookDelivery) (shown []delivery) {
	for _, d := range all {
		shown = append(shown, deliveryOf(d))
	}
	return shown
}

// attemptChart has a bar for each of the last attempts.
type attemptChart struct {
	Bars                       []attemptBar // the oldest first
	Delivered, Refused, Silent int
	Median, Max                int64 // milliseconds: the median and the longest
}

// attemptBar is one attempt. Its height grows with the logarithm of the time, so that an
// answer after 15 s doesn't flatten all others.
type attemptBar struct {
	attempt
	Delivery  delivery
	Y, Height int
}

// maxBars is how many attempts the chart shows.
const maxBars = 100

// The height of a bar for 0 ms, and the time in milliseconds of a bar of the full height.
const minBarHeight, maxBarMs = 6, 15_000

// attemptChartOf returns the chart of the last maxBars attempts of the deliveries.
func attemptChartOf(all []doorward.WebhookDelivery) (c attemptChart) {
	for _, d := range deliveriesOf(all) {
		for _, a := range d.Tries {
			c.Bars = append(c.Bars, attemptBar{attempt: a, Delivery: d})
		}
	}
	slices.SortStableFunc(c.Bars, func(a, b attemptBar) int { return a.At.Compare(b.At) })
	c.Bars = c.Bars[max(0, len(c.Bars)-maxBars):]
	var times []int64
	for i := range c.Bars {
		b := &c.Bars[i]
		b.Height = barHeight(b.Ms)
		b.Y = chartHeight - b.Height
		switch b.Kind {
		case "delivered":
			c.Delivered++
		case "refused":
			c.Refused++
		default:
			c.Silent++
		}
		times = append(times, b.Ms)
	}
	if slices.Sort(times); len(times) > 0 {
		c.Median, c.Max = times[len(times)/2], times[len(times)-1]
	}
	return c
}

func barHeight(ms int64) int {
	fraction := math.Log1p(float64(max(0, ms))) / math.Log1p(maxBarMs)
	return minBarHeight + int(fraction*(chartHeight-minBarHeight)+.5)
}

// deliveryPage is the page of one delivery: its attempts, and what is sent.
type deliveryPage struct {
	pageData
	Hook     endpoint
	Delivery delivery
	Body     string // as it is sent; empty: the event is no longer kept
	Readable string // the same on several lines
	Unsigned bool   // the server lacks the master key
}

func (h *console) deliveryPage(ctx context.Context, c *ui.Call) (ui.View, error) {
	s, err := h.pageData(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	id, err := c.ID("delivery", doorward.PrefixDelivery)
	if err != nil {
		return ui.View{}, err
	}
	m, err := h.app.Webhooks.Delivery(ctx, c.Caller, id)
	if err == nil && m.Webhook.ID != c.R.PathValue("id") {
		err = doorward.Fail(doorward.CodeNotFound, "")
	}
	if err != nil {
		return ui.View{}, err
	}
	body := deliveryPage{pageData: s, Hook: endpoint{Webhook: m.Webhook}, Delivery: deliveryOf(m.Delivery), Body: string(m.Body), Readable: readable(m.Body)}
	for i := range body.Delivery.Tries {
		a := &body.Delivery.Tries[i]
		a.Headers = headersOf(m, *a)
	}
	body.Unsigned = len(m.Body) > 0 && m.Headers(c.Now()).Get("Webhook-Signature") == ""
	return autoRefresh(c, ui.View{Page: "webhookdelivery", Body: body, Wide: true}), nil
}

// headersOf returns the headers of an attempt; none if there is no event to make them of.
func headersOf(m webhook.Message, a attempt) (all []header) {
	if len(m.Body) == 0 {
		return nil
	}
	sent := m.Headers(a.At)
	for _, name := range []string{"Content-Type", "User-Agent", "Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"} {
		if value := sent.Get(name); value != "" {
			all = append(all, header{name, value})
		}
	}
	return all
}

func readable(body []byte) string {
	var text bytes.Buffer
	if err := json.Indent(&text, body, "", "  "); err != nil {
		return ""
	}
	return text.String()
}

// retryDelivery tries a delivery again.
func (h *console) retryDelivery(ctx context.Context, c *ui.Call) (ui.View, error) {
	id, err := c.ID("delivery", doorward.PrefixDelivery)
	if err != nil {
		return ui.View{}, err
	}
	hook, err := c.ID("id", doorward.PrefixWebhook)
	if err != nil {
		return ui.View{}, err
	}
	err = h.app.Webhooks.Retry(ctx, c.Caller, id)
	return redirectDone(c, webhooksPath+"/"+hook+"/deliveries/"+id, "retried", nil), err
}
