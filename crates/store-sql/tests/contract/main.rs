//! Contract tests of the store, on SQLite and PostgreSQL.
//!
//! Each case runs on a new database. The PostgreSQL half needs `NUNCIO_TEST_PG`, a superuser's URL of a server where databases can be
//! created and dropped (`scripts/postgres.sh start` prints one); otherwise it is skipped with a notice.

mod accept;
mod audit;
mod bounds;
mod broadcasts;
mod budget;
mod cluster;
mod contacts;
mod copy;
mod coverage;
mod directory;
mod encryption;
mod erasure;
mod events;
mod harness;
mod idempotency;
mod invitations;
mod life;
mod lists;
mod load;
mod mailboxes;
mod make;
mod money;
mod nodes;
mod numbers;
mod people;
mod quotas;
mod reassembly;
mod receipts;
mod recipients;
mod retention;
mod rows;
mod schema;
mod suppressions;
mod templates;
mod traffic;
mod transition;
mod webhooks;

macro_rules! cases {
    (both { $($module:ident { $($case:ident,)+ })+ } postgres { $($own:ident { $($alone:ident,)+ })+ }) => {
        /// All cases.
        const CASES: &[&str] = &[$($(stringify!($case),)+)+ $($(stringify!($alone),)+)+];
        $($(cases!(@one $module $case sqlite Sqlite, postgres Postgres);)+)+
        $($(cases!(@one $own $alone postgres Postgres);)+)+
    };
    (@one $module:ident $case:ident $($name:ident $backend:ident),+) => {
        mod $case {
            use crate::harness::{Backend, run};
            $(
                #[test]
                fn $name() {
                    run(Backend::$backend, stringify!($case), |h| Box::pin(crate::$module::$case(h)));
                }
            )+
        }
    };
}

cases! {
    both {
        reassembly {
            a_message_in_parts_is_kept_under_its_key,
            of_two_who_bring_parts_one_waits_for_the_other,
        }
        receipts {
            references_come_with_the_answer_and_receipts_are_kept,
            an_id_that_another_node_was_given_again_is_the_newer_messages,
            a_stray_receipt_waits_and_is_given_up,
        }
        accept {
            a_new_recipient_gets_an_address_and_a_contact,
            a_known_recipient_keeps_both,
            a_new_recipient_of_many_messages_is_made_once,
            a_claimed_message_is_born_sending,
            a_new_message_passes_the_steps_that_wait,
            a_start_waits_for_the_results_that_made_room,
            a_new_message_passes_a_broadcast,
            a_suppressed_recipient_gets_nothing,
            a_stale_plan_writes_nothing,
            a_large_request_comes_back_whole,
            a_large_request_to_a_suppressed_recipient_comes_back_too,
            every_value_comes_back_as_it_was,
            a_message_that_cannot_be_written_fails_alone,
            an_address_that_is_taken_is_given_to_nobody_else,
            what_was_handed_in_is_written_though_nobody_waits,
            a_settled_message_comes_back_with_its_attempt,
        }
        bounds {
            lists_do_without_the_chunks_of_large_requests,
            worlds_remember_by_which_key_they_were_made,
        }
        idempotency {
            a_key_used_again_names_the_original,
            of_a_hundred_with_one_key_one_wins,
            keys_are_forgotten_a_while_after_the_end,
            keys_that_stay_hide_none_that_go,
            a_key_is_claimed_once_off_the_hot_path,
        }
        transition {
            of_two_starters_one_wins,
            steps_of_one_message_fold_in_any_order,
            what_a_step_told_is_answered,
            a_zombie_is_believed_but_not_obeyed,
            what_is_not_there_is_missing,
            a_cancel_and_a_start_exclude_each_other,
            waiting_for_a_receipt_ends,
            a_person_decides_about_a_held_message,
            held_messages_are_walked_in_pages,
            a_recipient_suppressed_meanwhile_is_not_sent_to,
            a_retry_takes_the_fallback_route,
            a_message_that_cannot_be_read_fails_alone,
            a_message_that_panics_fails_alone,
        }
        lists {
            every_filter_filters,
            metadata_is_compared_as_text,
            a_walk_over_pages_sees_every_row_once,
            a_filter_without_an_index_looks_at_so_many_rows,
            every_list_with_such_a_filter_goes_on,
            a_conversation_is_walked_whole,
            the_other_world_is_not_seen,
            contacts_come_in_the_order_of_messages,
            what_is_due_comes_longest_due_first,
            a_resting_connection_keeps_messages_until_their_fallback,
            rows_of_a_resting_connection_hide_no_other_message,
            what_waits_is_walked_by_when_it_is_due,
            an_agenda_row_goes_with_its_last_message,
            what_awaits_a_receipt_is_walked_newest_first,
            queued_messages_of_a_sender_are_found,
            a_row_that_nobody_guards_is_found,
        }
        retention {
            finished_messages_leave_with_all_that_is_theirs,
            the_log_leaves_but_for_what_webhooks_wait_for,
            old_deliveries_and_strays_leave,
            messages_that_stay_are_read_once_in_a_pass,
            ids_of_messages_that_are_gone_are_forgotten,
            ids_of_inbound_messages_that_are_gone_are_forgotten,
            tables_have_sizes,
        }
        directory {
            a_project_has_two_worlds,
            people_sign_in_and_out,
            people_belong_to_projects,
            every_change_raises_the_epoch_of_its_world,
            a_key_is_found_by_its_hash_and_revoked_once,
            keys_remember_their_last_use,
            a_world_has_one_default_sender,
            a_sender_has_one_connection_per_channel,
            senders_come_back_as_they_were_and_go,
            what_is_kept_of_an_account_comes_back,
            a_dropped_transaction_leaves_nothing,
            a_conflict_ends_the_transaction,
        }
        mailboxes {
            mail_for_an_address_comes_to_one_connection,
            an_inbound_address_is_pending_until_it_is_claimed,
            a_domain_is_given_to_one_project,
            codes_of_an_environment_are_kept_for_a_while,
        }
        contacts {
            metrics_add_up,
            what_is_not_proven_marks_no_channel,
            an_inbound_message_is_received_once,
            a_new_writer_of_many_messages_is_made_once,
            suppressions_hold_until_lifted,
            a_conversation_begins_with_the_first_word_and_after_silence,
            a_reply_goes_out_although_its_recipient_opted_out,
        }
        people {
            a_contact_comes_back_as_it_was,
            a_recipient_is_a_contact_with_the_channel_that_was_used,
            contacts_are_walked_newest_first,
            contacts_of_one_name_are_found,
            contacts_of_identifiers_are_found,
            an_address_goes_with_its_entries,
            a_merge_moves_everything,
            merges_in_all_directions_end_in_one_contact,
        }
        suppressions {
            suppressions_are_listed_and_lifted,
            a_mark_holds_until_the_recipient_is_known_again,
        }
        erasure {
            what_is_erased_leaves_no_trace_but_the_books,
            an_attempt_under_way_ends_without_words_and_without_another,
            what_endpoints_answered_is_forgotten,
        }
        webhooks {
            a_webhook_comes_back_as_it_was,
            a_log_has_one_reader,
            deliveries_wait_for_earlier_ones_of_their_resource,
            due_deliveries_are_found_among_many,
            a_delivered_delivery_stays_delivered,
            a_replay_is_not_undone_by_what_was_read_before,
        }
        events {
            what_happened_to_a_resource_is_told_in_order,
            the_log_is_read_in_commit_order,
            the_log_is_searched_by_time_and_resource,
        }
        numbers {
            the_inventory_is_searched,
            a_number_is_held_until_it_is_released,
            of_many_who_want_a_number_one_gets_it,
            held_numbers_are_listed,
            a_sender_changes_its_number_only_from_the_one_it_had,
        }
        invitations {
            an_invitation_comes_back_as_it_was,
            an_invitation_that_ended_is_expired,
            the_invitations_of_a_client_are_found,
            a_number_is_set_aside_while_its_invitation_is_open,
        }
        traffic {
            hourly_figures_add_up_and_leave,
        }
        audit {
            what_was_changed_is_listed,
        }
        templates {
            a_template_comes_back_as_it_was,
        }
        broadcasts {
            a_batch_reads_its_own_recipients_alone,
            a_broadcast_comes_back_as_it_was,
            a_review_policy_is_the_default_until_it_is_set,
            recipients_of_a_draft_come_and_go,
            a_recipient_is_handed_over_once,
            nobody_is_handed_over_by_a_broadcast_that_does_not_send,
            a_reservation_is_spent_under_one_fence,
            whoever_is_erased_leaves_broadcasts,
            counts_follow_the_messages,
            what_is_cancelled_does_not_start,
            what_is_paused_goes_back_to_its_broadcast,
            a_broadcast_that_is_due_is_taken_by_one,
            an_import_is_remembered_with_its_recipients,
            links_are_found_and_clicks_are_counted,
        }
        recipients {
            recipients_are_listed_by_what_their_messages_say,
            recipients_outlive_their_messages,
            a_recipient_is_written_once,
            the_few_are_found_among_many,
            what_is_refused_leaves_its_recipient_pending,
        }
        nodes {
            a_node_lives_while_its_counter_moves,
            a_node_that_owns_something_is_not_forgotten,
            the_database_tells_the_time,
            chunks_that_no_message_uses_are_swept,
            a_closed_store_has_written_what_it_took,
        }
        money {
            money_moves_once_and_never_below_nothing,
            the_ledger_is_listed_newest_first,
            a_sender_s_day_adds_up,
            a_message_sets_aside_pays_and_gives_back,
            a_message_that_cannot_be_paid_writes_nothing,
            many_spend_no_more_than_there_is,
            the_price_list_is_kept_by_place_and_date,
            what_is_known_of_a_recipient_and_its_country,
        }
        quotas {
            a_quota_counts_what_is_stored_and_refuses_the_rest,
            many_store_no_more_than_the_quota,
        }
        budget {
            a_message_costs_few_rows,
            a_message_writes_few_bytes,
            the_entries_of_a_batch_are_compressed,
            a_message_with_a_price_costs_a_few_more,
        }
        life {
            a_random_life_leaves_everything_guarded,
        }
        schema {
            every_migration_is_applied,
            the_tenant_begins_every_key,
        }
    }
    postgres {
        budget {
            rows_of_a_large_batch_stay_whole,
        }
        copy {
            an_embedded_database_is_copied_whole,
        }
        encryption {
            connections_are_encrypted_if_the_url_says_so,
        }
        events {
            positions_follow_the_order_of_commits,
        }
        money {
            two_nodes_spend_no_more_than_there_is,
        }
        broadcasts {
            two_nodes_hand_over_each_recipient_once,
        }
        load {
            two_nodes_change_the_same_messages,
            a_row_that_another_node_wrote_is_read_again,
            a_lane_survives_the_end_of_its_session,
            an_idle_transaction_that_the_server_ended_is_unavailable,
            a_database_that_takes_no_writes_is_not_ready,
            a_commit_without_an_answer_is_read_back,
            a_commit_that_goes_on_without_its_connection_is_waited_for,
            new_messages_take_one_round_trip,
            nothing_waits_longer_than_the_server_may_take,
        }
        schema {
            both_databases_have_one_schema,
            every_table_has_its_place_in_a_cluster,
            distribute_places_each_table_and_creates_the_row_types,
            no_statement_of_the_writer_reads_a_whole_table,
        }
    }
}
