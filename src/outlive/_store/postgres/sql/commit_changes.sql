SELECT lost, verdicts FROM {commit_changes}({change_numbers})
