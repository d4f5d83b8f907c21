SELECT {lock_audit}()
