/* python.exe: python.org's own is an installer's, and the package has the library alone. */
#include <wchar.h>

__declspec(dllimport) int Py_Main(int count, wchar_t **arguments);

int wmain(int count, wchar_t **arguments)
{
    return Py_Main(count, arguments);
}
