//! Checks that every method of the store has a case.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Methods, and the cases that call them by name.
const COVERED: &[(&str, &[&str])] = &[
    ("a_new_recipient_gets_an_address_and_a_contact", &["accept", "find_address"]),
    ("a_large_request_comes_back_whole", &["transition", "list_messages"]),
    ("a_key_used_again_names_the_original", &["find_message_by_idempotency_key"]),
    ("keys_are_forgotten_a_while_after_the_end", &["purge_idempotency_keys"]),
    ("a_key_is_claimed_once_off_the_hot_path", &["claim_idempotency_key"]),
    ("what_happened_to_a_resource_is_told_in_order", &["insert_event", "list_resource_events"]),
    ("a_log_has_one_reader", &["open_log", "close_log", "claim_log", "log_readers", "find_delivery"]),
    (
        "deliveries_wait_for_earlier_ones_of_their_resource",
        &[
            "due_deliveries",
            "waiting_webhooks",
            "next_delivery_at",
            "waiting_resources",
            "known_deliveries",
            "drop_deliveries",
            "mark_webhook",
        ],
    ),
    ("a_delivered_delivery_stays_delivered", &["list_deliveries", "replay_delivery", "log_deliveries"]),
    ("the_log_is_searched_by_time_and_resource", &["log_place"]),
    ("the_log_is_read_in_commit_order", &["read_log", "list_log", "log_end", "find_log_entry"]),
    ("a_webhook_comes_back_as_it_was", &["put_webhook", "find_webhook", "list_webhooks", "webhooks_of_senders", "delete_webhook"]),
    (
        "senders_come_back_as_they_were_and_go",
        &["find_senders", "list_senders", "delete_sender", "connections_of_senders", "find_connection", "connections_of_kinds"],
    ),
    ("mail_for_an_address_comes_to_one_connection", &["claim_mailbox", "find_mailbox", "release_mailbox"]),
    ("an_inbound_address_is_pending_until_it_is_claimed", &["set_inbound_address", "inbound_addresses"]),
    (
        "a_domain_is_given_to_one_project",
        &["assign_mail_domain", "find_mail_domain", "list_mail_domains", "delete_mail_domain", "mailboxes_of_domain"],
    ),
    ("codes_of_an_environment_are_kept_for_a_while", &["put_mail_code", "list_mail_codes", "purge_mail_codes"]),
    ("what_is_kept_of_an_account_comes_back", &["put_account", "accounts_of_senders", "delete_account"]),
    ("queued_messages_of_a_sender_are_found", &["has_queued_messages"]),
    ("a_claimed_message_is_born_sending", &["messages_owned_by"]),
    ("a_person_decides_about_a_held_message", &["held_messages"]),
    ("the_other_world_is_not_seen", &["lookup_message", "lookup_messages", "list_message_events"]),
    ("contacts_come_in_the_order_of_messages", &["contacts_of_messages"]),
    ("what_is_due_comes_longest_due_first", &["due_messages", "overdue_messages"]),
    ("hourly_figures_add_up_and_leave", &["add_traffic", "traffic_by_time", "traffic_by_country", "forget_traffic"]),
    ("what_waits_is_walked_by_when_it_is_due", &["waiting_messages"]),
    ("an_agenda_row_goes_with_its_last_message", &["delete_agenda_rows"]),
    ("what_awaits_a_receipt_is_walked_newest_first", &["messages_awaiting_receipts"]),
    ("a_quota_counts_what_is_stored_and_refuses_the_rest", &["limit_storage", "find_storage", "delete_spool"]),
    ("a_review_policy_is_the_default_until_it_is_set", &["review_policy", "put_review_policy"]),
    ("finished_messages_leave_with_all_that_is_theirs", &["forget_messages"]),
    ("the_log_leaves_but_for_what_webhooks_wait_for", &["forget_log"]),
    ("old_deliveries_and_strays_leave", &["forget_deliveries", "forget_strays"]),
    ("ids_of_messages_that_are_gone_are_forgotten", &["forget_provider_ids"]),
    ("tables_have_sizes", &["table_sizes"]),
    ("a_row_that_nobody_guards_is_found", &["count_unguarded_messages"]),
    ("chunks_that_no_message_uses_are_swept", &["insert_spool_chunk", "purge_orphaned_spool"]),
    ("a_project_has_two_worlds", &["insert_project", "list_projects", "load_tenant"]),
    (
        "every_change_raises_the_epoch_of_its_world",
        &["raise_epoch", "epochs", "insert_sender", "update_sender", "put_connection", "delete_connection"],
    ),
    ("a_key_is_found_by_its_hash_and_revoked_once", &["insert_key", "find_key", "list_keys", "revoke_key"]),
    ("keys_remember_their_last_use", &["mark_keys_used"]),
    ("worlds_remember_by_which_key_they_were_made", &["check_key"]),
    ("a_dropped_transaction_leaves_nothing", &["commit"]),
    ("metrics_add_up", &["add_metrics", "channel_metrics"]),
    ("suppressions_hold_until_lifted", &["insert_suppression", "delete_opt_out", "is_suppressed"]),
    ("a_node_lives_while_its_counter_moves", &["insert_node", "beat", "list_nodes", "mark_dead"]),
    ("a_node_that_owns_something_is_not_forgotten", &["delete_node", "owners"]),
    ("the_database_tells_the_time", &["database_time"]),
    ("a_closed_store_has_written_what_it_took", &["begin", "read", "ping", "close", "advice"]),
    ("the_inventory_is_searched", &["available_numbers", "list_inventory", "find_inventory_number"]),
    ("a_number_is_held_until_it_is_released", &["put_inventory_number", "find_number", "lock_number", "update_number", "release_number"]),
    ("of_many_who_want_a_number_one_gets_it", &["acquire_number"]),
    ("held_numbers_are_listed", &["list_numbers", "due_numbers", "unassign_numbers"]),
    ("a_sender_changes_its_number_only_from_the_one_it_had", &["swap_sender_phone"]),
    (
        "an_invitation_comes_back_as_it_was",
        &["insert_invitation", "lock_invitation", "update_invitation", "find_invitation", "find_invitation_by_token"],
    ),
    ("an_invitation_that_ended_is_expired", &["list_invitations", "due_invitations"]),
    ("a_number_is_set_aside_while_its_invitation_is_open", &["invitation_of_number"]),
    ("an_inbound_message_is_received_once", &["insert_inbound"]),
    ("money_moves_once_and_never_below_nothing", &["transfer", "find_balance", "limit_balance", "list_transfers", "sum_transfers"]),
    ("the_ledger_is_listed_newest_first", &["list_entries"]),
    ("a_message_in_parts_is_kept_under_its_key", &["lock_reassembly", "put_reassembly", "due_reassemblies", "delete_reassembly"]),
    ("references_come_with_the_answer_and_receipts_are_kept", &["list_receipts"]),
    ("a_stray_receipt_waits_and_is_given_up", &["insert_stray", "due_strays", "reschedule_stray", "delete_stray", "list_strays"]),
    ("a_sender_s_day_adds_up", &["spent_by_sender"]),
    ("the_price_list_is_kept_by_place_and_date", &["list_prices", "put_prices"]),
    ("what_is_known_of_a_recipient_and_its_country", &["recipient_metrics", "country_metrics", "add_country_metrics"]),
    ("a_reply_goes_out_although_its_recipient_opted_out", &["insert_reply"]),
    (
        "a_contact_comes_back_as_it_was",
        &[
            "find_contact",
            "insert_contact",
            "update_contact",
            "delete_contact",
            "insert_address",
            "put_channel_entry",
            "addresses_of_contacts",
        ],
    ),
    ("contacts_are_walked_newest_first", &["list_contacts"]),
    ("contacts_of_one_name_are_found", &["contacts_named"]),
    ("contacts_of_identifiers_are_found", &["contacts_by_identifier"]),
    ("an_address_goes_with_its_entries", &["delete_address", "delete_metrics"]),
    ("a_merge_moves_everything", &["lookup_contacts", "lock_contacts", "merge_contact", "merged_into", "merged_from"]),
    ("suppressions_are_listed_and_lifted", &["list_suppressions", "find_suppression", "delete_suppression"]),
    ("a_mark_holds_until_the_recipient_is_known_again", &["rename_suppressions"]),
    (
        "what_is_erased_leaves_no_trace_but_the_books",
        &["insert_erasure", "list_erasures", "delete_erasure", "messages_to_erase", "erase_messages", "erase_events"],
    ),
    ("whoever_is_erased_leaves_broadcasts", &["erase_broadcast_contacts"]),
    ("the_invitations_of_a_client_are_found", &["invitations_of_client"]),
    (
        "a_template_comes_back_as_it_was",
        &["insert_template", "find_template", "list_templates", "update_template", "delete_template", "due_templates"],
    ),
    ("a_broadcast_comes_back_as_it_was", &["insert_broadcast", "find_broadcast", "list_broadcasts", "update_broadcast"]),
    (
        "recipients_of_a_draft_come_and_go",
        &[
            "delete_draft_broadcast",
            "insert_broadcast_contacts",
            "list_broadcast_contacts",
            "find_broadcast_recipient",
            "delete_broadcast_contact",
            "pending_broadcast_contacts",
        ],
    ),
    ("counts_follow_the_messages", &["fail_broadcast_contact"]),
    ("what_is_cancelled_does_not_start", &["unsent_broadcast_messages"]),
    (
        "an_import_is_remembered_with_its_recipients",
        &["find_broadcast_import", "put_broadcast_import", "count_suppressed_contacts", "suppressed_since", "find_broadcast_contact"],
    ),
    (
        "people_sign_in_and_out",
        &[
            "insert_user",
            "find_user",
            "has_users",
            "put_password",
            "find_user_by_id",
            "put_factor",
            "delete_user",
            "insert_session",
            "list_sessions",
            "find_session",
            "update_session",
            "delete_session",
            "purge_sessions",
            "update_project",
        ],
    ),
    ("people_belong_to_projects", &["insert_membership", "update_membership", "delete_membership", "list_memberships", "list_members"]),
    ("what_was_changed_is_listed", &["insert_audit_entry", "list_audit_entries"]),
    (
        "links_are_found_and_clicks_are_counted",
        &["put_broadcast_links", "find_broadcast_link", "count_broadcast_click", "broadcast_clicks"],
    ),
    ("a_broadcast_that_is_due_is_taken_by_one", &["due_broadcasts", "claim_broadcast"]),
];

fn sources(dir: &Path) -> String {
    let files = dir.read_dir().unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|e| e == "rs")).map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

/// Returns the names that follow `async fn`, each with the text up to the next one.
fn functions(source: &str) -> BTreeMap<&str, &str> {
    let parts = source.split("async fn ").skip(1);
    parts.map(|part| (part.split(['(', '<']).next().unwrap(), part)).collect()
}

#[test]
fn every_method_has_a_case() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let traits = sources(&here.join("../store/src"));
    let methods: BTreeSet<_> = functions(&traits).into_keys().collect();
    let covered: BTreeSet<_> = COVERED.iter().flat_map(|(_, methods)| methods.iter().copied()).collect();
    assert_eq!(methods, covered, "left: what the traits have; right: what cases stand for");

    let cases = sources(&here.join("tests/contract"));
    let cases = functions(&cases);
    for (case, methods) in COVERED {
        assert!(crate::CASES.contains(case), "{case} is not run");
        // A harness helper counts as the method it calls. The text of a case ends at the next function.
        let text = cases[case];
        for method in *methods {
            let called = text.contains(&format!(".{method}(")) || text.contains(&format!("{}(h, ", helper(method)));
            assert!(called, "{case} does not call {method}");
        }
    }
}

/// Returns the helper that only calls this method.
fn helper(method: &str) -> &str {
    match method {
        "log_deliveries" => "log",
        "insert_inbound" => "receive",
        "find_mailbox" => "holder",
        "limit_storage" => "limit",
        method => method,
    }
}
