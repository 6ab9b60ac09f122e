//! Tests of pages: the banners that they get, and the effect of a click on one.

use std::collections::BTreeSet;

use bywash_adserver::{Level, Options};

use crate::site::{Site, banner, half_over};

#[test]
fn a_page_gets_what_matches_each_once_and_no_two_rivals() {
    Site::each(|site| {
        let mut client = site.client();
        client.set_up("car,road,sea");
        for concepts in ["car", "road", "car,road"] {
            client.sign(&half_over(10_000, &banner(concepts)));
        }
        for _ in 0..2 {
            client.sign(&half_over(10_000, &format!("{}&category=rivals", banner("sea"))));
        }
        for _ in 0..50 {
            let page: Vec<_> =
                client.page("slots=5&concepts=car,road").into_iter().map(|(id, _)| id).collect();
            assert_eq!(page.iter().copied().collect::<BTreeSet<_>>(), [1, 2, 3].into());
            assert_eq!(page.len(), 3);
            assert_eq!(client.page("slots=5&concepts=sea").len(), 1);
        }
        assert!(client.page("slots=5&concepts=sea&size=120x60").is_empty());
        let stats = site.wait_until_settled();
        assert_eq!((stats.selections.pages, stats.selections.placed), (101, 200));
    });
}

#[test]
fn a_click_is_counted_once_and_leads_where_the_contract_says() {
    let mut site = Site::open();
    let mut client = site.client();
    client.set_up("car");
    let id = client.sign(&half_over(10_000, &banner("car")));
    let (_, click) = client.page("slot=1").pop().unwrap();
    for _ in 0..3 {
        let reply =
            client.get(&format!("{click}?landing=https://evil.example/&url=//evil.example"));
        assert_eq!(
            (reply.status, reply.header("location")),
            (302, Some("https://example.com/car"))
        );
    }
    site.restart();
    let mut client = site.client();
    assert_eq!(client.get(&click).status, 302, "a restart forgets no placement");
    let report = client.json(&format!("/contracts/{id}"));
    assert_eq!((&report["clicks"], &report["click_through_rate"]), (&1.into(), &1.0.into()));
    let stats = site.wait_until_settled();
    assert_eq!((stats.clicks_counted, stats.clicks_repeated), (0, 1));

    let (_, other) = client.page("slot=1").pop().unwrap();
    assert_ne!(click, other);
    let last = if other.ends_with('0') { '1' } else { '0' };
    let forged = format!("{}{last}", &other[..other.len() - 1]);
    for wrong in [forged.as_str(), "/click/", "/click/0", "/click/%2e%2e", &other.to_uppercase()] {
        assert_eq!(client.get(wrong).status, 404, "{wrong}");
    }
}

#[test]
fn a_level_is_believed_where_the_option_says_so() {
    for believed in [false, true] {
        let site = Site::with(|options| Options { level_parameter: believed, ..options });
        let mut client = site.client();
        client.set_up("car");
        assert!(client.page("slots=1&concepts=car&type=1").is_empty());
        let stats = site.wait_until_settled();
        assert_eq!(stats.level(Level::High).answered, u64::from(believed));
        assert_eq!(stats.level(Level::Low).answered, u64::from(!believed));
        let wrong = client.get("/ad?slots=1&concepts=car&type=2");
        assert_eq!(wrong.status, if believed { 400 } else { 200 });
    }
}

#[test]
fn statistics_are_json() {
    let site = Site::open();
    let mut client = site.client();
    client.set_up("car");
    client.page("slots=2&concepts=car");
    site.wait_until_settled();
    for target in ["/stats", "/-/stats"] {
        let stats = client.json(target);
        assert_eq!(
            (&stats["levels"]["low"]["answered"], &stats["backlog"]),
            (&1.into(), &511.into())
        );
        assert_eq!(
            (&stats["selections"]["by"], &stats["selections"]["empty"]),
            (&"wheels".into(), &2.into())
        );
    }
}
