"""Warehouses as earlier versions left them, one archive each, and the script that makes one."""
