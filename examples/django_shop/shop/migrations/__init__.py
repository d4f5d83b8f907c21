"""What `python manage.py migrate` brings into the database."""
