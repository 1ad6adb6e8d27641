//! Figures by hour and by day.

use std::time::Duration;

use nuncio_domain::{Channel, Timestamp};
use nuncio_store::{DAY, HOUR, Traffic, TrafficRow};

use crate::harness::Harness;

fn row(hour: i64, channel: Channel, country: &str, figures: Traffic) -> TrafficRow {
    TrafficRow { span: HOUR, began: Timestamp::from_millis(hour * HOUR), channel, country: country.to_owned(), figures }
}

fn figures(factor: i64) -> Traffic {
    let mut figures = Traffic { sent: 7, unconfirmed: 1, delivered: 4, failed: 2, spent: 1_000_000_000_000, delays: [0; 8] };
    for millis in [0, 1_000, 1_001, 4_000, 14_000, 59_000, 299_000, 1_800_000, 1_800_001] {
        figures.add_delay(millis);
    }
    let mut sum = Traffic::default();
    (0..factor).for_each(|_| sum.add(&figures));
    sum
}

pub(crate) async fn hourly_figures_add_up_and_leave(h: &Harness) {
    let (tenant, base) = (h.world.tenant, 500_000);
    let at = |hour| Timestamp::from_millis(hour * HOUR);
    let rows = [
        row(base, Channel::Sms, "", figures(1)),
        row(base, Channel::Sms, "ES", figures(1)),
        row(base + 1, Channel::Sms, "ES", figures(1)),
        row(base + 1, Channel::Whatsapp, "ES", figures(2)),
        row(base + 2, Channel::Sms, "ES", figures(1)),
    ];
    let mut tx = h.begin().await;
    for row in rows.iter().chain(&rows[1..2]) {
        tx.add_traffic(tenant, row).await.unwrap();
    }
    tx.add_traffic(h.other.tenant, &rows[0]).await.unwrap();
    // Days differ from their hours here, which shows what is read.
    let day = TrafficRow { span: DAY, began: at(base - base % 24), ..row(0, Channel::Sms, "ES", figures(9)) };
    tx.add_traffic(tenant, &day).await.unwrap();
    tx.commit().await.unwrap();

    let timeless = |factor| Traffic { delays: [0; 8], ..figures(factor) };
    let mut tx = h.read().await;
    let hours = tx.traffic_by_time(tenant, at(base), 1).await.unwrap();
    let expected = [
        (at(base), Channel::Sms, timeless(3)),
        (at(base + 1), Channel::Sms, timeless(1)),
        (at(base + 1), Channel::Whatsapp, timeless(2)),
        (at(base + 2), Channel::Sms, timeless(1)),
    ];
    assert_eq!(hours, expected);
    let spans = tx.traffic_by_time(tenant, at(base), 2).await.unwrap();
    assert_eq!(spans[0], (at(base), Channel::Sms, timeless(4)), "spans begin with the first hour");
    assert_eq!(spans[2], (at(base + 2), Channel::Sms, timeless(1)));
    let countries = tx.traffic_by_country(tenant, at(base + 1)).await.unwrap();
    assert_eq!(countries, [(Channel::Sms, "ES".to_owned(), figures(2)), (Channel::Whatsapp, "ES".to_owned(), figures(2))]);
    assert_eq!(tx.traffic_by_country(h.other.tenant, at(base)).await.unwrap(), [(Channel::Sms, String::new(), figures(1))]);
    let days = tx.traffic_by_time(tenant, day.began, 24).await.unwrap();
    assert_eq!(days, [(day.began, Channel::Sms, timeless(9))], "whole days are read as days");
    assert_eq!(tx.traffic_by_time(tenant, day.began, 12).await.unwrap()[0].2, timeless(5), "their halves as hours");
    assert_eq!(tx.traffic_by_country(tenant, day.began).await.unwrap(), [(Channel::Sms, "ES".to_owned(), figures(9))]);
    drop(tx);

    let mut tx = h.begin().await;
    assert_eq!(tx.forget_traffic(tenant, at(base + 1), 1).await.unwrap(), 1, "a few at a time");
    assert_eq!(tx.forget_traffic(tenant, at(base + 1).plus(Duration::from_millis(1)), 9).await.unwrap(), 4, "the day too");
    tx.commit().await.unwrap();
    let mut tx = h.read().await;
    assert_eq!(tx.traffic_by_time(tenant, at(0), 1).await.unwrap().len(), 1);
    assert_eq!(tx.traffic_by_time(h.other.tenant, at(0), 1).await.unwrap().len(), 1);
}
