//! What a publisher is told: placements and clicks by slot.

use crate::site::{Site, banner, half_over};

#[test]
fn placements_and_clicks_are_counted_for_the_slot_they_were_in() {
    let mut site = Site::open();
    let mut client = site.client();
    client.set_up("car,road");
    client.slot("road", 1_000);
    let small = "publisher=1&size=120x60&concepts=car&impressions_per_day=100000000";
    assert_eq!(client.post("/slots", small).status, 201);
    client.sign(&half_over(10_000, &banner("car")));
    client.sign(&half_over(10_000, &banner("road")));
    client.sign(&half_over(10_000, "landing=https://example.org&size=120x60&concepts=car"));
    // Three places of two sizes on one page.
    let page = client.json("/ad?slot=1,2,3");
    let placed = page["banners"].as_array().unwrap();
    assert_eq!(
        placed.iter().map(|one| one["slot"].as_u64().unwrap()).collect::<Vec<_>>(),
        [1, 2, 3]
    );
    assert_eq!((&placed[2]["banner"], &placed[2]["size"]), (&3.into(), &"120x60".into()));
    let click = placed[1]["click"].as_str().unwrap();
    assert_eq!(client.get(click).status, 302);
    client.page("slot=2");
    for _ in 0..2 {
        let report = site.client().json("/publishers/1");
        let slots = report["slots"].as_array().unwrap();
        let counts =
            |name: &str| slots.iter().map(|slot| slot[name].as_u64().unwrap()).collect::<Vec<_>>();
        assert_eq!((counts("placements"), counts("clicks")), (vec![1, 2, 1], vec![0, 1, 0]));
        site.restart();
    }
}
