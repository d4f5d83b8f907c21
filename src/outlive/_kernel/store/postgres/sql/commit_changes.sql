SELECT lost, deliveries FROM {commit_changes}({change_numbers})
