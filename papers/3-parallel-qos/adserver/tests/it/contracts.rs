//! Tests of contracts: they are accepted if there is capacity, delivered along their dates, and
//! cancelled.

use crate::site::{HOUR, Site, banner, half_over, json, now};

#[test]
fn a_contract_is_accepted_if_there_is_room_and_refused_with_figures_if_not() {
    let mut site = Site::open();
    let mut client = site.client();
    client.set_up("car");
    client.post("/concepts", "name=sea");
    let slot = client.slot("sea", 1_000);
    let day = now() + 48 * HOUR;
    let sea = |impressions: u64| {
        let (from, to) = (day, day + 48 * HOUR);
        let banner = banner("sea");
        format!("advertiser=Harbour&impressions={impressions}&from={from}&to={to}&{banner}")
    };
    client.sign(&sea(1_200));
    let refused = client.post("/contracts", &sea(801));
    assert_eq!(refused.status, 409);
    assert!(refused.body.contains("needs 401 impressions on 20"), "{}", refused.body);
    assert!(refused.body.contains("400 are possible"), "{}", refused.body);
    assert_eq!(client.json("/contracts")["contracts"].as_array().unwrap().len(), 1);
    let second = client.sign(&sea(800));
    assert_eq!(client.post("/contracts", &sea(1)).status, 409);

    // Capacity that the contracts need cannot be taken away. Unused capacity can.
    let shrink = client.post(&format!("/slots/{slot}"), "impressions_per_day=999");
    assert_eq!(shrink.status, 409);
    assert!(shrink.body.contains("1000 impressions on 20"), "{}", shrink.body);
    assert_eq!(client.delete(&format!("/slots/{slot}")).status, 409);
    assert_eq!(client.post(&format!("/slots/{slot}"), "impressions_per_day=1000").status, 200);
    let other = client.slot("sea", 7);
    assert_eq!(client.delete(&format!("/slots/{other}")).status, 200);
    assert_eq!(client.delete(&format!("/slots/{other}")).status, 404);

    // A cancelled contract frees its capacity, and contracts survive a restart of the server.
    assert_eq!(client.delete(&format!("/contracts/{second}")).status, 200);
    assert_eq!(client.delete(&format!("/contracts/{second}")).status, 409);
    site.restart();
    let mut client = site.client();
    let third = client.sign(&sea(800));
    assert_eq!(third, 3);
    assert_eq!(client.json("/contracts/2")["status"], "cancelled");
    assert_eq!(client.json("/contracts/3")["status"], "planned");
    assert_eq!(client.post("/contracts", &sea(1)).status, 409);
}

#[test]
fn a_contract_is_delivered_up_to_its_line_and_not_further() {
    Site::each(|mut site| {
        let mut client = site.client();
        client.set_up("car,road");
        let id = client.sign(&half_over(1_000, &banner("car,road")));
        // Half of the impressions plus 1 % of slack, minus the impressions of up to a second,
        // because timestamps are whole seconds.
        let placed = client.drain("slots=1&concepts=road", 505);
        let report = client.json(&format!("/contracts/{id}"));
        assert_eq!(report["delivered"], placed);
        let due = report["schedule"]["due"].as_u64().unwrap();
        assert!(placed <= due + 10, "{report}");
        assert_eq!(
            report["schedule"]["ahead"].as_i64().unwrap(),
            placed.cast_signed() - due.cast_signed()
        );
        assert_eq!(report["status"], "running");
        site.restart();
        let report = site.client().json(&format!("/contracts/{id}"));
        assert_eq!(report["delivered"], placed, "a good stop counts exactly");
    });
}

#[test]
fn a_cancelled_contract_is_not_delivered_and_what_was_stays_counted() {
    Site::each(|site| {
        let mut client = site.client();
        client.set_up("car");
        let id = client.sign(&half_over(1_000, &banner("car")));
        let (_, click) = client.page("slots=1&concepts=car").pop().unwrap();
        assert_eq!(client.delete(&format!("/contracts/{id}")).status, 200);
        assert!(client.page("slots=1&concepts=car").is_empty());
        assert_eq!(client.get(&click).status, 302);
        let report = client.json(&format!("/contracts/{id}"));
        assert_eq!((&report["delivered"], &report["clicks"]), (&1.into(), &1.into()));
    });
}

#[test]
fn impressions_are_shared_by_the_banners_of_a_contract() {
    let site = Site::open();
    let mut client = site.client();
    client.set_up("car,road");
    let banners = format!("{}&{}", banner("car"), banner("road"));
    let report = client.post("/contracts", &half_over(101, &banners));
    let report = json(&report, 201);
    let shares: Vec<_> = report["banners"].as_array().unwrap().iter().collect();
    assert_eq!((&shares[0]["impressions"], &shares[1]["impressions"]), (&51.into(), &50.into()));
    assert_eq!(report["impressions"], 101);
    assert_eq!(shares[1]["concepts"][0], "road");
}

#[test]
fn a_list_of_contracts_comes_in_pieces() {
    let site = Site::with(|options| bywash_adserver::Options {
        fill: Some("250,10,1".parse().unwrap()),
        ..options
    });
    let mut client = site.client();
    let (mut target, mut seen) = ("/contracts".to_owned(), 0);
    loop {
        let piece = client.json(&target);
        seen += piece["contracts"].as_array().unwrap().len();
        let Some(next) = piece["next"].as_str() else { break };
        next.clone_into(&mut target);
    }
    assert_eq!(seen, 250);
}
