"""The tests that are not run on Windows, or not under Wine, each with the reason.

By the reason, then by the folder or file below `tests/`: the names of tests, with all their parameters, or none where
all are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

LEFT_OUT: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "It drives a browser of this system.": {
        "browser": (),
    },
    "It needs the SDK, the clients or the npm packages that only their own make targets install.": {
        "clients": (),
        "conformance": (),
        "dotnet": (),
        "proxy/scenarios/test_real_projects.py": (),
    },
    "It installs and judges packages, on the system that builds them.": {
        "release": (),
        "test_lock.py": (),
        "test_wheel.py": (),
    },
    "It is a long run of its own, with faults that Linux offers.": {
        "chaos": (),
        "fuzz": (),
        "soak": (),
        "support/test_coverage_run.py": (),
        "support/test_long_runs.py": (),
    },
    "It holds documents and figures, which are the same on every system.": {
        "documents": (),
        "support/test_programs.py": (),
        "test_bars.py": (),
        "test_documents.py": (),
        "test_figures.py": (),
        "test_peers.py": (),
        "test_relay_benchmark.py": (),
    },
    "It is about signals, sessions, forks or zombies of POSIX; there, whatever ends a process kills it.": {
        "instances/test_child_process.py": (
            "test_an_output_that_somebody_empties_goes_on_at_its_beginning",
            "test_at_the_end_all_that_still_run_are_ended_whichever_thread_has_spawned_them",
            "test_it_has_a_session_of_its_own_and_no_input",
            "test_one_that_does_not_end_when_asked_is_killed_with_all_that_it_started",
            "test_one_that_ends_when_asked_is_not_killed",
            "test_what_a_script_left_behind_can_be_ended",
            "test_what_a_script_started_is_asked_to_end_too",
            "test_what_has_ended_and_is_not_buried_holds_up_no_stop",
        ),
        "instances/test_launch.py": (
            "test_a_host_that_is_stopped_while_it_starts_is_not_started_again",
            "test_a_launched_host_is_the_child_it_serves_and_ends_when_it_is_stopped",
        ),
        "instances/test_registry.py": (
            "test_servers_come_in_the_order_of_their_process_ids",
            "test_what_is_no_file_hides_only_itself",
        ),
        "instances/test_registry_scan.py": ("test_a_server_that_ended_and_was_not_asked_about_is_gone",),
        "instances/test_start.py": ("test_a_server_that_has_to_go_and_does_not_is_an_error",),
        "instances/test_stop.py": (
            "test_a_server_ends_and_its_registration_goes",
            "test_stubborn_servers_are_waited_for_together",
        ),
        "system/test_ancestry.py": (),
        "system/test_event_loop.py": ("test_of_one_that_has_ended_it_returns_at_once",),
        "system/test_files.py": (
            "test_a_writer_that_is_killed_before_the_rename_leaves_the_old_content",
            "test_what_is_no_regular_file_is_refused_without_waiting",
        ),
        "system/test_processes.py": (
            "test_a_process_that_does_not_obey_is_killed_after_the_grace",
            "test_a_process_that_has_ended_counts_as_stopped",
            "test_a_process_that_nobody_has_asked_about_since_it_ended_does_not_live",
            "test_a_process_that_obeys_is_asked_and_not_killed",
            "test_the_children_of_a_killed_process_go_too",
            "test_this_process_and_its_parent_live",
        ),
        "system/test_run.py": (
            "test_a_process_that_ends_takes_along_what_its_threads_run",
            "test_a_program_killed_by_a_signal_has_a_negative_code",
            "test_a_program_that_closes_its_output_early_is_waited_for",
            "test_an_interrupt_does_not_leave_the_program_running",
            "test_the_program_runs_in_a_session_of_its_own",
        ),
        "workspace/test_config.py": ("test_what_is_no_readable_file_is_reported",),
        "workspace/test_trust.py": ("test_a_config_that_cannot_be_read_is_never_agreed_to",),
    },
    "It is about Unix sockets; what listens on named pipes is tested by the walk and tests/hotreload.": {
        "system/test_files.py": ("test_what_is_no_regular_file_is_refused_without_waiting",),
        "system/test_pipe_clients.py": (),
        "system/test_pipes.py": (),
    },
    "It is about users with numbers, or the kernel's tables of sockets on Linux.": {
        "system/test_files.py": ("test_an_unreadable_file_says_so",),
        "system/test_folders.py": ("test_without_home_the_passwd_entry_counts",),
        "system/test_processes.py": (
            "test_the_machines_name_ends_at_the_first_dot",
            "test_the_users_name_is_that_of_the_passwd_entry_whatever_the_environment_says",
        ),
        "system/test_tcp_peers.py": (),
    },
    "It spells the paths that it expects with slashes, or in another way that is only POSIX's.": {
        "instances/test_csproj_user.py": ("test_a_warning_names_a_few_of_many_projects",),
        "instances/test_host_program.py": (
            "test_a_library_is_run_by_dotnet_and_rolled_forward_where_it_has_to_be",
            "test_addins_are_one_value_and_a_semicolon_in_a_path_is_avoided_if_it_can_be",
        ),
        "system/test_folders.py": (
            "test_a_given_environment_is_asked_instead_of_the_processs_own",
            "test_the_registry_and_our_state_lie_where_the_net_tool_looks",
        ),
        "system/test_programs.py": ("test_a_program_is_looked_for_in_absolute_folders_only",),
        "system/test_run.py": (
            "test_a_missing_working_folder_says_so",
            "test_folder_and_environment_are_those_given",
            "test_the_first_executable_file_on_the_path_is_the_program",
        ),
        "system/test_safe_paths.py": ("test_what_is_still_to_be_made_is_inside_too",),
        "workspace/test_addins.py": ("test_sources_are_all_python_files_below_the_folder",),
        "workspace/test_config.py": (
            "test_a_build_is_a_command_line_a_list_or_false",
            "test_a_folder_that_does_not_exist_is_named_by_its_full_path",
            "test_a_root_without_a_package_is_told_what_paths_are_relative_to",
            "test_a_server_whose_folder_is_missing_is_not_replaced_by_a_host",
            "test_every_field_is_read_and_paths_are_relative_to_the_file",
            "test_the_code_of_a_server_is_in_its_root_else_where_it_runs_else_in_the_workspace",
        ),
        "workspace/test_dotnet_answers.py": (),
        "workspace/test_dotnet_project.py": (),
        "workspace/test_env_file.py": ("test_a_file_that_does_not_exist_is_named",),
        "workspace/test_repository.py": (
            "test_a_worktree_and_a_submodule_have_a_file_in_place_of_the_folder",
            "test_packages_of_the_repository_count_but_for_those_around_the_package",
            "test_the_workspace_folder_counts_with_and_without_a_repository",
        ),
        "workspace/test_server_command.py": (),
        "workspace/test_trust.py": (
            "test_a_package_that_no_relative_path_leads_to_can_be_agreed_to",
            "test_an_agreement_is_kept_and_can_be_taken_back",
            "test_edits_are_agreed_to_and_a_changed_config_or_a_new_kind_of_code_is_not",
            "test_the_agreement_holds_for_every_way_to_the_same_place",
        ),
    },
    "It is about terminals, or streams that do not block, of POSIX.": {
        "system/test_event_loop.py": ("test_it_returns_when_the_process_ends_and_not_before",),
        "system/test_log.py": ("test_a_closed_stderr_is_no_reason_to_fail_and_the_file_still_gets_the_line",),
        "system/test_nonblocking_output.py": (),
    },
    "It is about the modes of files, or takes a right away by them.": {
        "instances/test_child_process.py": ("test_the_output_of_another_user_makes_room",),
        "instances/test_csproj_user.py": ("test_a_folder_that_cannot_be_written_does_not_stop_the_others",),
        "instances/test_registry.py": ("test_an_entry_has_the_bytes_that_net_writes",),
        "instances/test_registry_scan.py": (
            "test_in_a_folder_that_cannot_be_written_stale_entries_are_passed_over",
            "test_what_the_net_tool_cleans_up_goes_here_too_except_what_a_living_process_may_be_writing",
        ),
        "instances/test_start.py": ("test_the_file_is_the_users_alone_and_the_last_port_counts",),
        "system/test_files.py": (
            "test_a_file_is_written_with_its_folders_for_this_user_only",
            "test_a_rewritten_file_keeps_its_mode_whatever_the_umask",
            "test_another_mode_can_be_asked_for",
            "test_folders_that_are_made_on_the_way_are_this_users_alone_whatever_the_umask",
        ),
        "system/test_log.py": (
            "test_a_name_without_a_folder_is_a_file_in_the_current_one_which_only_the_user_can_read",
        ),
        "workspace/test_trust.py": ("test_the_file_is_the_users_alone_and_says_how_it_came_about",),
    },
    "It needs limits of POSIX, or a device of Linux that is full.": {
        "system/test_files.py": ("test_when_the_disk_write_fails_the_old_content_stays",),
        "system/test_locks.py": ("test_a_full_disk_does_not_take_the_lock_away",),
    },
    "It expects an error of POSIX, or a name that only POSIX has.": {
        "instances/test_launch.py": ("test_a_workspace_that_is_gone_is_named",),
        "instances/test_registry.py": ("test_a_folder_that_cannot_be_used_is_a_problem_that_names_the_file",),
        "instances/test_registry_scan.py": (
            "test_a_missing_folder_is_an_empty_registry_and_a_file_in_its_place_a_problem",
        ),
        "system/test_files.py": (
            "test_a_file_used_as_a_folder_is_a_problem",
            "test_a_folder_in_the_place_of_the_file_is_an_error_and_stays",
            "test_a_path_that_no_system_can_have_is_a_problem",
        ),
        "system/test_safe_paths.py": ("test_a_name_that_is_too_long_is_refused",),
        "workspace/test_trust.py": ("test_a_name_that_is_no_text_can_be_agreed_to",),
    },
    "It replaces or removes what is open, which Windows refuses.": {
        "instances/test_child_process.py": ("test_a_new_output_begins_anew_and_keeps_the_one_before_beside_it",),
        "system/test_files.py": ("test_a_reader_of_the_old_file_keeps_the_old_content",),
        "workspace/test_solution_finder.py": ("test_a_removed_current_folder_has_no_solutions",),
        "workspace/test_solutions.py": ("test_a_removed_current_folder_is_no_crash",),
    },
    "It makes names that differ in case alone.": {
        "instances/test_workspace_servers.py": (
            "test_folders_that_differ_in_case_alone_are_two_places_where_both_exist",
        ),
        "system/test_safe_paths.py": ("test_path_escape_is_refused",),
        "workspace/test_trust.py": (
            "test_folders_that_differ_in_case_alone_are_two_questions",
            "test_revoking_the_agreement_of_a_path_leaves_that_of_a_path_in_other_letters",
        ),
    },
    "It uses the pipe of a child, which is a handle there, and not a file.": {
        "instances/test_child_process.py": ("test_one_that_is_spoken_to_has_pipes_and_prints_on_stderr_only",),
    },
    "It compares bytes that print() has written, which ends lines otherwise there, or in another encoding.": {
        "system/test_run.py": (
            "test_a_child_that_the_program_leaves_behind_delays_nothing_and_is_stopped",
            "test_a_process_that_another_thread_forgets_meanwhile_does_not_disturb_a_start",
            "test_a_program_that_does_not_read_its_input_ends_as_usual",
            "test_our_own_standard_input_is_not_inherited",
            "test_the_exit_code_is_the_programs_own",
            "test_the_time_limit_stops_the_program_and_its_children",
            "test_what_it_prints_is_heard_while_it_runs_and_it_can_be_given_up",
        ),
        "workspace/test_config.py": ("test_what_is_wrong_is_named_by_its_place_and_the_default_counts",),
    },
    "It makes links, which Wine cannot, and Windows only for administrators.": {
        "instances/test_csproj_user.py": (
            "test_a_link_is_followed_and_stays_a_link",
            "test_links_that_lead_out_of_the_workspace_are_not_followed",
            "test_links_to_nowhere_folders_and_pipes_are_left_alone",
        ),
        "instances/test_host_program.py": ("test_a_link_of_the_workspace_to_a_package_of_the_user_needs_consent_too",),
        "instances/test_registry.py": ("test_a_solution_that_is_entered_by_a_link_is_the_same",),
        "instances/test_registry_scan.py": ("test_pipes_links_and_folders_hide_only_themselves",),
        "system/test_files.py": (
            "test_a_dangling_link_is_file_not_found_and_a_loop_is_a_problem",
            "test_a_link_to_a_file_is_followed",
            "test_the_target_of_a_link_is_rewritten_and_the_link_stays",
            "test_what_is_no_regular_file_is_refused_without_waiting",
        ),
        "system/test_safe_paths.py": (
            "test_a_link_that_stays_inside_leads_to_its_target",
            "test_a_root_that_is_a_link_itself_is_followed",
            "test_path_escape_through_links_is_refused",
        ),
        "system/test_state_files.py": ("test_a_link_and_another_case_are_the_same_place",),
        "workspace/test_addins.py": ("test_a_link_to_a_pipe_that_nobody_writes_is_passed_over",),
        "workspace/test_command_package.py": ("test_a_link_that_leads_out_of_the_repository_is_not_followed",),
        "workspace/test_config.py": ("test_a_config_that_is_a_link_out_of_the_workspace_is_not_read",),
        "workspace/test_resolver.py": ("test_what_a_link_in_the_folder_leads_to_is_not_its_own",),
        "workspace/test_solution_finder.py": (
            "test_a_link_to_another_place_is_followed_once",
            "test_a_linked_solution_file_counts_and_a_dangling_link_does_not",
        ),
        "workspace/test_trust.py": ("test_a_link_to_a_package_that_leads_elsewhere_needs_a_new_agreement",),
    },
    "It looks into /proc.": {
        "system/test_processes.py": ("test_a_process_whose_parent_does_not_ask_about_it_is_gone_nevertheless",),
    },
    "It needs git, a shell, or another program of this system.": {
        "workspace/test_resolver.py": ("test_an_ignored_solution_does_not_compete",),
        "workspace/test_solution_finder.py": ("test_ignored_solutions_are_no_candidates",),
    },
}


def reason_of(path: PurePosixPath, name: str = "") -> str | None:
    """Why a test, or all of a file or folder below `tests/`, is left out."""
    for reason, places in LEFT_OUT.items():
        if name and name in places.get(str(path), ()):
            return reason
        if any(places.get(str(one)) == () for one in (path, *path.parents)):
            return reason
    return None
