//! Tests of the reports to publishers: placements and clicks by slot.

use crate::site::{Site, banner, half_over};

#[test]
fn a_slot_takes_banners_about_its_own_concepts() {
    Site::each(|site| {
        let mut client = site.client();
        client.set_up("car,road");
        client.slot("road", 1_000_000);
        client.slot("car", 1_000_000);
        client.sign(&half_over(100_000, &banner("car")));
        client.sign(&half_over(100_000, &banner("road")));
        let both = banner("car,road").replace("com/car,road", "com/");
        client.sign(&half_over(100_000, &both));
        // Each iteration takes at most two impressions of one banner. The first 64 impressions of a
        // banner are reserved when the contract is signed, so no iteration waits for the disk.
        for _ in 0..32 {
            let page = client.json("/ad?slot=1,2,3");
            let placed = page["banners"].as_array().unwrap().iter();
            let placed: Vec<_> =
                placed.map(|one| (one["slot"].as_u64(), one["banner"].as_u64())).collect();
            let [(first, _), (second, about_road), (third, about_car)] = placed[..] else {
                panic!("{placed:?}");
            };
            assert_eq!([first, second, third], [1, 2, 3].map(Some), "in the order asked for");
            assert_ne!(about_road, Some(1), "{placed:?}");
            assert_ne!(about_car, Some(2), "{placed:?}");
            // The concepts that a page names replace the concepts of its slots.
            let named = client.json("/ad?slot=2&concepts=car");
            assert_ne!(named["banners"][0]["banner"], 2);
        }
    });
}

#[test]
fn publishers_and_slots_are_listed_a_hundred_at_a_time() {
    let site = Site::open();
    let mut client = site.client();
    client.set_up("car");
    for number in 2..=150 {
        let name = format!("name=Daily+{number}");
        assert_eq!(client.post("/publishers", &name).status, 201);
    }
    let list = client.json("/publishers");
    assert_eq!(list["publishers"].as_array().unwrap().len(), 100);
    assert_eq!(
        list["publishers"][99],
        serde_json::json!({ "publisher": 100, "name": "Daily 100" })
    );
    assert_eq!(list["next"], "/publishers?after=100");
    let rest = client.json("/publishers?after=100");
    assert_eq!((rest["publishers"].as_array().unwrap().len(), &rest["next"]), (50, &().into()));
    let slots = client.json("/slots");
    assert_eq!((&slots["slots"][0]["publisher"], &slots["next"]), (&1.into(), &().into()));
    assert_eq!(client.json("/slots?after=1")["slots"], serde_json::json!([]));
}

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
    // Request three places of two sizes for one page.
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
