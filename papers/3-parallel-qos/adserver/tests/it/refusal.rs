//! Tests of rejected requests: each gets a clear answer and changes nothing.

use crate::site::{HOUR, Site, banner, half_over, now};

/// A request and its expected answer: method, target, body, status, and a part of the error
/// message.
type Case<'a> = (&'a str, &'a str, &'a str, u16, &'a str);

/// Asserts that an ad server with one contract rejects each request, and that no request has
/// changed anything.
fn refused(cases: &[Case]) {
    let site = Site::open();
    let mut client = site.client();
    client.set_up("car,cart");
    // Sign a contract that has not begun, because the due impressions of a running one change with
    // time.
    let (from, to) = (now() + HOUR, now() + 2 * HOUR);
    let flight = format!("from={from}&to={to}");
    client.sign(&format!("advertiser=A&impressions=10000&{flight}&{}", banner("car")));
    let before = (client.get("/contracts").body, client.get("/publishers/1").body);
    for (method, target, body, status, words) in cases {
        let reply = client.exchange(method, target, "", body);
        assert_eq!(reply.status, *status, "{method} {target} {}", reply.body);
        assert!(reply.body.contains(words), "{method} {target}: {}", reply.body);
    }
    let after = (client.get("/contracts").body, client.get("/publishers/1").body);
    assert_eq!(before, after);
}

#[test]
fn what_is_not_there() {
    refused(&[
        ("GET", "/", "", 404, "no such page"),
        ("GET", "/contracts/9", "", 404, "no such contract"),
        ("GET", "/contracts/-1", "", 404, "no such page"),
        ("DELETE", "/contracts/9", "", 404, "no such contract"),
        ("GET", "/publishers/2", "", 404, "no such publisher"),
        ("POST", "/slots/9", "impressions_per_day=1", 404, "no such slot"),
        ("DELETE", "/slots/9", "", 404, "no such slot"),
        ("PUT", "/contracts", "", 405, "another method"),
        ("GET", "/ad?slot=9", "", 404, "no such slot"),
        ("GET", "/click/00", "", 404, "no such placement"),
    ]);
    let site = Site::open();
    let allowed = site.client().exchange("PUT", "/contracts", "", "");
    assert_eq!(allowed.header("allow"), Some("GET, POST"));
}

#[test]
fn publishers_and_slots_that_cannot_be() {
    let slot = "size=9x9&impressions_per_day=5";
    let with = |rest: &str| format!("{slot}&{rest}");
    refused(&[
        ("POST", "/concepts", "name=Two+Words", 400, "name must be"),
        ("POST", "/concepts", "", 400, "name must be"),
        ("POST", "/concepts", "name=a&name=b", 400, "the field name, once"),
        ("POST", "/publishers", "name=%00", 400, "name must be"),
        ("POST", "/publishers", "title=Daily", 400, "a publisher takes the field name"),
        (
            "POST",
            "/slots",
            "publisher=1&size=9x9&concepts=car&impressions_per_day=0",
            400,
            "from 1 to",
        ),
        ("POST", "/slots", &with("publisher=1&concepts="), 400, "concepts must"),
        ("POST", "/slots", &with("publisher=1&concepts=ca"), 400, "similar: car"),
        ("POST", "/slots", &with("publisher=7&concepts=car"), 404, "publisher"),
        ("POST", "/slots", &with("publisher=x&concepts=car"), 400, "publisher must be"),
        ("POST", "/slots", &with("publisher=1&publisher=2&concepts=car"), 400, "each once"),
        ("POST", "/slots", &with("publisher=1&concepts=car&per_day=7"), 400, "a slot takes"),
        ("POST", "/slots/1", "per_day=7", 400, "a slot takes the field impressions_per_day"),
        ("DELETE", "/slots/1?sure=yes", "", 400, "takes no fields"),
        ("GET", "/contracts?after=x", "", 400, "after must be"),
        ("GET", "/slots?before=7", "", 400, "a list takes the field after"),
    ]);
}

#[test]
fn contracts_that_cannot_be() {
    let large = format!("advertiser={}", "x".repeat(65 * 1024));
    let (good, past) = (half_over(10, &banner("car")), now() - 10);
    let huge = half_over(1_000_000_000, &banner("car"));
    let unknown = half_over(10, &banner("csr"));
    let mixed = half_over(10, &format!("{}&{}", banner("car"), banner("boat")));
    let of = |from: u64, to: u64| {
        format!("advertiser=A&impressions=5&from={from}&to={to}&{}", banner("car"))
    };
    let script = good.replace("https://", "javascript:");
    refused(&[
        ("POST", "/contracts", &huge, 409, "not enough capacity"),
        ("POST", "/contracts", &unknown, 400, "there is no concept csr; similar: car, cart"),
        ("POST", "/contracts", &mixed, 400, "there is no concept boat"),
        ("POST", "/contracts", &of(now() + 9, now() + 5), 400, "from must be before to"),
        ("POST", "/contracts", &of(5, past), 400, "to must not be in the past"),
        ("POST", "/contracts", &script, 400, "landing must be"),
        ("POST", "/contracts", &large, 413, "larger than 64 KiB"),
        ("POST", "/contracts", "%%%&&&===\0", 400, "a contract takes the fields advertiser"),
        ("POST", "/contracts", &format!("{good}&form=7"), 400, "from and to, each once"),
        // The form has the dates of another contract in addition to its own.
        ("POST", "/contracts", &format!("{good}&from=7&to=9"), 400, "from and to, each once"),
    ]);
}

#[test]
fn pages_that_cannot_be() {
    refused(&[
        ("GET", "/ad", "", 400, "slots must be"),
        ("GET", "/ad?slots=0&concepts=car", "", 400, "slots must be"),
        ("GET", "/ad?slots=1000&concepts=car", "", 400, "slots must be"),
        ("GET", "/ad?slots=1&slots=2&concepts=car", "", 400, "each once"),
        ("GET", "/ad?slots=1&concepts=boat", "", 400, "there is no concept boat"),
        ("GET", "/ad?slots=1&concepts=%3Cscript%3E", "", 400, "concepts must be"),
    ]);
    let site = Site::open();
    let mut client = site.client();
    client.set_up("car");
    // Unknown fields are allowed here, because pages carry some to bypass caches.
    assert_eq!(client.get("/ad?slots=1&concepts=car&cb=8345&cb=1").status, 200);
}

#[test]
fn names_are_escaped_where_they_are_written() {
    let site = Site::open();
    let mut client = site.client();
    client.set_up("car");
    let name = "%22%7D%3Cscript%3E%5C";
    client.post("/publishers", &format!("name={name}"));
    assert_eq!(client.json("/publishers/2")["name"], "\"}<script>\\");
    let fields = half_over(10, &banner("car")).replace("Someone", name);
    let id = client.sign(&fields);
    assert_eq!(client.json(&format!("/contracts/{id}"))["advertiser"], "\"}<script>\\");
    assert_eq!(client.get("/contracts").header("x-content-type-options"), Some("nosniff"));
}
