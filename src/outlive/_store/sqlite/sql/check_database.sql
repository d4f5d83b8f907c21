SELECT integrity_check FROM pragma_integrity_check(?1)
