package pages

import "testing"

func TestHighlight(t *testing.T) {
	for _, c := range []struct{ language, code, want string }{
		{
			"cedar", "@id(\"a<b\") forbid(principal, action, resource) // no\nwhen { context.hour > 8 };",
			`<span class="name">@id</span>(<span class="string">&#34;a&lt;b&#34;</span>) <span class="word">forbid</span>(<span class="name">principal</span>, <span class="name">action</span>, <span class="name">resource</span>) <span class="comment">// no</span>` + "\n" + `<span class="word">when</span> { <span class="name">context</span>.hour &gt; <span class="word">8</span> };`,
		},
		{
			"yaml", "# a\nactions:\n  a.b: {roles: [OWNER], keys: true}\n",
			`<span class="comment"># a</span>` + "\n" + `<span class="name">actions</span>:` + "\n  " + `<span class="name">a.b</span>: {<span class="name">roles</span>: [OWNER], <span class="name">keys</span>: <span class="word">true</span>}` + "\n",
		},
		{"json", `{"a": "https://x", "b": 1}`, `{<span class="name">&#34;a&#34;</span>: <span class="string">&#34;https://x&#34;</span>, <span class="name">&#34;b&#34;</span>: <span class="word">1</span>}`},
		{"sh", "doorward serve --listen \"$A\" # x", `doorward serve <span class="name">--listen</span> <span class="string">&#34;$A&#34;</span> <span class="comment"># x</span>`},
		{"text", "a < b # c", "a &lt; b # c"},
	} {
		if got := highlight(c.code, c.language); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.language, got, c.want)
		}
	}
}
