//! Whatever is sent, the answer is a clear one and nothing changes.

use crate::site::{Site, banner, half_over, now};

#[test]
fn what_cannot_be_meant_is_refused_and_changes_nothing() {
    let site = Site::open();
    let mut client = site.client();
    client.set_up("car,cart");
    client.sign(&half_over(10_000, &banner("car")));
    let before = (client.get("/contracts").body, client.get("/publishers/1").body);
    let large = format!("advertiser={}", "x".repeat(65 * 1024));
    let (good, past) = (half_over(10, &banner("car")), now() - 10);
    let huge = half_over(1_000_000_000, &banner("car"));
    let unknown = half_over(10, &banner("csr"));
    let mixed = half_over(10, &format!("{}&{}", banner("car"), banner("boat")));
    let backwards =
        format!("advertiser=A&impressions=5&from={}&to={}&{}", now() + 9, now() + 5, banner("car"));
    let ended = format!("advertiser=A&impressions=5&from=5&to={past}&{}", banner("car"));
    let script = good.replace("https://", "javascript:");
    for (method, target, body, status, words) in [
        ("GET", "/", "", 404, "no such page"),
        ("GET", "/contracts/9", "", 404, "no such contract"),
        ("GET", "/contracts/-1", "", 404, "no such page"),
        ("DELETE", "/contracts/9", "", 404, "no such contract"),
        ("GET", "/publishers/2", "", 404, "no such publisher"),
        ("POST", "/slots/9", "impressions_per_day=1", 404, "no such slot"),
        ("DELETE", "/slots/9", "", 404, "no such slot"),
        ("PUT", "/contracts", "", 405, "another method"),
        ("POST", "/concepts", "name=Two+Words", 400, "name must be"),
        ("POST", "/concepts", "", 400, "name must be"),
        ("POST", "/publishers", "name=%00", 400, "name must be"),
        (
            "POST",
            "/slots",
            "publisher=1&size=9x9&concepts=car&impressions_per_day=0",
            400,
            "from 1 to",
        ),
        (
            "POST",
            "/slots",
            "publisher=1&size=9x9&concepts=&impressions_per_day=5",
            400,
            "concepts must",
        ),
        (
            "POST",
            "/slots",
            "publisher=1&size=9x9&concepts=ca&impressions_per_day=5",
            400,
            "there is: car",
        ),
        (
            "POST",
            "/slots",
            "publisher=7&size=9x9&concepts=car&impressions_per_day=5",
            404,
            "publisher",
        ),
        (
            "POST",
            "/slots",
            "publisher=x&size=9x9&concepts=car&impressions_per_day=5",
            400,
            "publisher",
        ),
        ("POST", "/contracts", huge.as_str(), 409, "capacity is not there"),
        ("POST", "/contracts", &unknown, 400, "no concept is called csr; there is: car, cart"),
        ("POST", "/contracts", &mixed, 400, "no concept is called boat"),
        ("POST", "/contracts", &backwards, 400, "from must be before to"),
        ("POST", "/contracts", &ended, 400, "to must not be past"),
        ("POST", "/contracts", &script, 400, "landing must be"),
        ("POST", "/contracts", &large, 413, "larger than 64 KiB"),
        ("POST", "/contracts", "%%%&&&===\0", 400, "advertiser must be"),
        ("GET", "/ad", "", 400, "slots must be"),
        ("GET", "/ad?slots=0&concepts=car", "", 400, "slots must be"),
        ("GET", "/ad?slots=1000&concepts=car", "", 400, "slots must be"),
        ("GET", "/ad?slots=1&concepts=boat", "", 400, "no concept is called boat"),
        ("GET", "/ad?slots=1&concepts=%3Cscript%3E", "", 400, "concepts must be"),
        ("GET", "/ad?slot=9", "", 404, "no such slot"),
        ("GET", "/click/00", "", 404, "no such placement"),
        ("GET", "/contracts?after=x", "", 400, "after must be"),
    ] {
        let reply = client.exchange(method, target, "", body);
        assert_eq!(reply.status, status, "{method} {target} {}", reply.body);
        assert!(reply.body.contains(words), "{method} {target}: {}", reply.body);
    }
    assert_eq!(client.exchange("PUT", "/contracts", "", "").header("allow"), Some("GET, POST"));
    let after = (client.get("/contracts").body, client.get("/publishers/1").body);
    assert_eq!(before, after);
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
