//! The business profile of the simulated account.

use std::sync::Arc;

use nuncio_channel::{Adapter, Picture};
use nuncio_domain::Channel;
use nuncio_domain::profile::{BusinessAccount, ProfileChange, Vertical};

use crate::support::{Recorder, account, services};

fn open(channel: Channel) -> Arc<dyn Adapter> {
    nuncio_channel_sim::factory().open(&account(channel), &services(Arc::new(Recorder::default()))).expect("it opens")
}

#[tokio::test]
async fn whatsapp_has_a_profile_that_is_what_was_made_of_it() {
    let adapter = open(Channel::Whatsapp);
    let api = adapter.profile().expect("a profile");
    let fresh = api.get(&BusinessAccount::default()).await.expect("an account");
    assert!(fresh.can_send_templates() && !fresh.phone_number_id.is_empty(), "{fresh:?}");
    let change = ProfileChange { about: Some("hello".into()), vertical: Some(Vertical::Travel), ..ProfileChange::default() };
    let changed = api.update(&fresh, &change).await.expect("an account");
    assert_eq!((changed.profile.about.as_str(), changed.profile.vertical), ("hello", Vertical::Travel));
    let picture = Picture { url: "https://example.org/a.png".into(), mime_type: "image/png", bytes: vec![1] };
    let pictured = api.set_picture(&changed, &picture).await.expect("an account");
    assert_eq!((pictured.profile.about.as_str(), pictured.profile.profile_picture_url.as_str()), ("hello", "https://example.org/a.png"));
    assert_eq!(api.get(&pictured).await, Ok(pictured));
}

#[test]
fn no_other_channel_has_one() {
    for channel in Channel::ALL.iter().filter(|c| **c != Channel::Whatsapp) {
        assert!(open(*channel).profile().is_none(), "{channel}");
    }
}
