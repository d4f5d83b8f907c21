SELECT integrity_check FROM pragma_integrity_check LIMIT ?1
