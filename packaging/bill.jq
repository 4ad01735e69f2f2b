# Reduces what cargo-cyclonedx lists to the crates of one program: jq --rawfile tree FILE --arg root FOLDER -f packaging/bill.jq
#
# The tool lists each crate with the features that any crate of the workspace asks for, so the simulator's bill would have SQLite in
# it. FILE has the crates that cargo compiles, one `NAME VERSION` a line. Paths of the machine that made the bill are removed.
def crates: $tree | split("\n") | map(select(. != "") | {(.): true}) | add;
crates as $crates
| .components |= map(select($crates["\(.name) \(.version)"]))
| ([.metadata.component, .components[]] | map({(.["bom-ref"]): true}) | add) as $listed
| .dependencies |= map(select($listed[.ref]) | if .dependsOn then .dependsOn |= map(select($listed[.])) else . end)
| walk(if type == "string" then gsub("path\\+file://" + $root + "/"; "") | gsub("\\?download_url=file://[^#]*"; "") else . end)
