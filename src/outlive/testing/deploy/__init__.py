"""Forecasts a deploy of this code for the runs that are open in a store."""

from outlive.testing.deploy.checking import DeployCheck, check_deploy
from outlive.testing.deploy.replaying import engine_in
from outlive.testing.deploy.report import DeployReport, Group
from outlive.testing.deploy.verdict import Kind

__all__ = ["DeployCheck", "DeployReport", "Group", "Kind", "check_deploy", "engine_in"]
