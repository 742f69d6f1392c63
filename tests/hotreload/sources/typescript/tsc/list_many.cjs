// The compiler's command line, once per configuration, in one process and without its library, which we leave out anyway:
// start and library take longer than the rest.
const ts = require(process.argv[2]);
for (const config of process.argv.slice(3)) {
  process.chdir(require("path").dirname(config));
  process.stdout.write(`# ${config}\n`);
  const system = { ...ts.sys, exit: () => {} };
  ts.executeCommandLine(system, () => {}, ["--listFilesOnly", "--noLib", "-p", config]);
}
