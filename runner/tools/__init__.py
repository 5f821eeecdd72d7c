"""What stands beside the evening: grade, compare, tripwire, matrix, case study, doctor, replay, folder lock, MCP.

Each tool takes paths and typed settings, and gives records, or lines and data ready to print. A tool may use any room
of the evening; it knows neither argparse nor exit codes, and little of the other tools.
"""
