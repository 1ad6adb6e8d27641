//! Business profiles of WhatsApp senders, and the status of their accounts.

use serde::{Deserialize, Serialize};

use crate::{channel::named, id::SenderId, set_if_given, time::Timestamp};

named! {
    /// Industry of a business.
    #[derive(Default)]
    #[cfg_attr(feature = "openapi", schema(as = BusinessVertical))]
    Vertical {
        /// Not set.
        #[default]
        Undefined = 1 "UNDEFINED",
        Other = 2 "OTHER",
        /// Cars.
        Auto = 3 "AUTO",
        Beauty = 4 "BEAUTY",
        /// Clothes.
        Apparel = 5 "APPAREL",
        /// Education.
        Edu = 6 "EDU",
        /// Entertainment.
        Entertain = 7 "ENTERTAIN",
        /// Planning of events.
        EventPlan = 8 "EVENT_PLAN",
        Finance = 9 "FINANCE",
        /// Groceries.
        Grocery = 10 "GROCERY",
        /// Government.
        Govt = 11 "GOVT",
        Hotel = 12 "HOTEL",
        Health = 13 "HEALTH",
        /// Nonprofit organisations.
        Nonprofit = 14 "NONPROFIT",
        /// Professional services.
        ProfServices = 15 "PROF_SERVICES",
        /// Shops.
        Retail = 16 "RETAIL",
        Travel = 17 "TRAVEL",
        Restaurant = 18 "RESTAURANT",
        /// Not a business.
        NotABiz = 19 "NOT_A_BIZ",
    }
}

named! {
    /// Whether billing with the provider is set up.
    #[derive(Default)]
    SetupStatus {
        #[default]
        NotStarted = 1 "NOT_STARTED",
        Complete = 2 "COMPLETE",
    }
}

named! {
    /// Status of the payment method at the provider.
    #[derive(Default)]
    MethodStatus {
        #[default]
        None = 1 "NONE",
        Valid = 2 "VALID",
    }
}

/// Public profile of a business. An empty text is unset.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct BusinessProfile {
    /// Tagline below the name.
    pub about: String,
    pub address: String,
    pub description: String,
    /// Contact address.
    pub email: String,
    pub profile_picture_url: String,
    /// Web sites.
    pub websites: Vec<String>,
    /// Industry.
    pub vertical: Vertical,
}

/// A change of a [`BusinessProfile`]; absent fields stay. The picture has a separate call.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ProfileChange {
    pub about: Option<String>,
    pub address: Option<String>,
    pub description: Option<String>,
    pub email: Option<String>,
    pub websites: Option<Vec<String>>,
    pub vertical: Option<Vertical>,
}

impl ProfileChange {
    /// Returns the change that sets every field of `profile` except its picture.
    pub fn to(profile: &BusinessProfile) -> Self {
        let said = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        Self {
            about: said(&profile.about),
            address: said(&profile.address),
            description: said(&profile.description),
            email: said(&profile.email),
            websites: Some(profile.websites.clone()).filter(|sites| !sites.is_empty()),
            vertical: Some(profile.vertical).filter(|vertical| *vertical != Vertical::Undefined),
        }
    }

    /// Applies the change.
    pub fn apply(&self, profile: &mut BusinessProfile) {
        set_if_given(&mut profile.about, &self.about);
        set_if_given(&mut profile.address, &self.address);
        set_if_given(&mut profile.description, &self.description);
        set_if_given(&mut profile.email, &self.email);
        set_if_given(&mut profile.websites, &self.websites);
        set_if_given(&mut profile.vertical, &self.vertical);
    }
}

/// Status of a business account at the provider.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct BusinessAccount {
    /// The provider's id of the phone number.
    pub phone_number_id: String,
    /// The phone number as recipients see it; empty means the sender's own.
    pub display_phone_number: String,
    /// Whether billing is set up.
    pub setup_status: SetupStatus,
    /// Status of the payment method.
    pub method_status: MethodStatus,
    pub profile: BusinessProfile,
}

impl BusinessAccount {
    /// Returns whether it can send templates, which cost money.
    pub fn can_send_templates(&self) -> bool {
        self.setup_status == SetupStatus::Complete && self.method_status == MethodStatus::Valid
    }
}

/// What is kept of a sender's business account.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeptAccount {
    pub sender: SenderId,
    /// Incremented by each change.
    pub version: i64,
    /// The provider's last answer.
    pub account: BusinessAccount,
    /// The profile was copied from another sender, and no provider was told of it yet.
    pub unsent: bool,
    /// When it last changed.
    pub updated_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_leaves_alone_what_it_does_not_name() {
        let before = BusinessProfile { about: "a".into(), email: "a@example.org".into(), ..BusinessProfile::default() };
        let mut after = before.clone();
        ProfileChange { email: Some(String::new()), vertical: Some(Vertical::EventPlan), ..ProfileChange::default() }.apply(&mut after);
        assert_eq!(after, BusinessProfile { email: String::new(), vertical: Vertical::EventPlan, ..before.clone() });
        ProfileChange::to(&before).apply(&mut after);
        assert_eq!(after, BusinessProfile { vertical: Vertical::EventPlan, ..before }, "what is not said is no change");
    }
}
