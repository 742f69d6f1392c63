// The messages of the IDE channel that the tests exchange, in an assembly of the name that IDE extensions have: a
// receiver finds the class of a message by the assembly-qualified name in its envelope.

using System.Collections.Generic;
using System.Reflection;

[assembly: AssemblyVersion("255.255.255.255")]

namespace Uno.UI.RemoteControl.Messaging.IdeChannel
{
    public sealed class KeepAliveIdeMessage
    {
        public string Source { get; set; }
        public long SequenceId { get; set; }
        public string Scope { get; set; }
    }

    public sealed class AppLaunchRegisterIdeMessage
    {
        public System.Guid Mvid { get; set; }
        public string Platform { get; set; }
        public bool IsDebug { get; set; }
        public string Ide { get; set; }
        public string Plugin { get; set; }
        public string Scope { get; set; }
    }

    public sealed class DevelopmentEnvironmentStatusIdeMessage
    {
        public DevelopmentEnvironmentComponent Component { get; set; }
        public DevelopmentEnvironmentStatus Status { get; set; }
        public string Description { get; set; }
        public string Details { get; set; }
        public string ErrorTrace { get; set; }
        public List<Command> Actions { get; set; }
        public string Scope { get; set; }
    }

    public sealed class DevelopmentEnvironmentComponent
    {
        public string Id { get; set; }
        public int Priority { get; set; }
        public string Name { get; set; }
        public string Description { get; set; }
    }

    public enum DevelopmentEnvironmentStatus { Initializing, Disabled, Ready, Warning, Error }

    public sealed class Command
    {
        public string Text { get; set; }
        public string Name { get; set; }
        public string Parameter { get; set; }
    }
}
