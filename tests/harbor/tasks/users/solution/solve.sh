#!/bin/bash
id -un > name
echo "$HOME" > home
pwd > folder
if touch /etc/changed 2>/dev/null; then echo yes; else echo no; fi > is_root
if touch /solution/changed 2>/dev/null; then echo yes; else echo no; fi > owns_solution
